"""Each person's own list of items: what is in it, in which order, and what its browser calls it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, event

from spanlab.base.errors import NotFoundError
from spanlab.oplog.operations import FinishItem, SentOperation, SetStatus
from spanlab.review import queue as review
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    CheckRules,
    MeasurementPlan,
    QueuePlace,
    QueueQuery,
    Record,
    Status,
)
from spanlab.storage import Store
from spanlab.storage.tables import queue_items, queues
from spanlab.worklists import check_items, drawing, paging, plans
from spanlab.worklists.names import handle_of, item_of

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]

ADA = QueueQuery(reviewer="Ada", listed=True, blind=True, limit=100)


def _import(store: Store, record: MakeRecord, said: Say, known: range, others: range) -> None:
    """Add items with known answers, and others, of which every fourth is to be known."""
    gold = said("gold", (4, 9), kind=AnnotatorKind.GOLD)
    checks = [record(f"known {number}", gold) for number in known]
    store.import_records("d", [*checks, *(record(f"item {number}") for number in others)])
    rules = {"always_blind": True, "known": CheckRules(share=0.25)}
    store.change_settings("d", lambda now: now.model_copy(update=rules))


def _plan(store: Store, **plan: object) -> None:
    store.change_settings("d", lambda now: now.model_copy(update=plan))


def _listed(store: Store, query: QueueQuery = ADA) -> list[str]:
    return [row.item_id for row in paging.page(store, "d", query).rows]


def _drawn(store: Store, person: str = "Ada") -> dict[str, str]:
    """Draw a list, and return what its browser calls each item, in the list's order."""
    drawing.draw(store, "d", person)
    names = _listed(store, QueueQuery(reviewer=person, listed=True, limit=1000))
    return {name: handle_of(store, "d", person, name) for name in names}


def _decide(store: Store, item: str, person: str = "Ada", *, skip: bool = False) -> None:
    base = store.review("d", item, person).version
    done = SetStatus(status=Status.SKIPPED) if skip else FinishItem()
    write = SentOperation(f"{item} {person}", base + 1, base, done)
    assert not store.apply("d", item, person, [write]).refused


def _known_in(names: list[str]) -> list[int]:
    return [place for place, name in enumerate(names) if name.startswith("known")]


def test_a_list_has_check_items_among_a_persons_part_and_stays_as_it_is(
    store: Store, record: MakeRecord, said: Say
) -> None:
    _import(store, record, said, range(20), range(40))
    drawn = _drawn(store)
    names = list(drawn)
    assert {name for name in names if name[0] == "i"} == {f"item {n}" for n in range(40)}
    places = _known_in(names)
    assert len(places) == 13
    assert {item.item_id for item in check_items.given_to(store, "d", "Ada").hidden} == {
        names[place] for place in places
    }
    assert len(set(drawn.values())) == len(drawn)
    assert not set(drawn.values()) & set(_drawn(store, "Ben").values())
    assert _drawn(store) == drawn
    for name in (next(name for name in names if name.startswith("known")), "item 7"):
        assert item_of(store, "d", "Ada", drawn[name]) == name
        assert paging.standing(store, "d", ADA, name).number == names.index(name) + 1
    for step in (1, -1):
        walked = [names[0] if step > 0 else names[-1]]
        while (following := paging.neighbour(store, "d", ADA, walked[-1], step)) is not None:
            walked.append(following)
        assert walked[::step] == names
    outside = next(f"known {n}" for n in range(20) if f"known {n}" not in names)
    for ask in (
        lambda: item_of(store, "d", "Ada", "known 0"),
        lambda: item_of(store, "d", "Ada", handle_of(store, "d", "Ben", "item 7")),
        lambda: handle_of(store, "d", "Ada", outside),
        lambda: paging.standing(store, "d", ADA, outside),
        lambda: paging.neighbour(store, "d", ADA, outside),
    ):
        with pytest.raises(NotFoundError, match="has no item"):
            ask()


def test_pages_filters_and_searches_go_through_the_list_alone(
    store: Store, record: MakeRecord, said: Say
) -> None:
    _import(store, record, said, range(20), range(40))
    names = list(_drawn(store))
    for name in names[:10]:
        _decide(store, name, skip=name == names[4])
    done = QueueQuery(reviewer="Ada", listed=True, status=Status.DONE)
    assert _listed(store, done) == [*names[:4], *names[5:10]]
    left = QueueQuery(reviewer="Ada", listed=True, unfinished=True, limit=5)
    first = paging.page(store, "d", left)
    assert [row.item_id for row in first.rows] == [names[4], *names[10:14]]
    assert [row.position for row in first.rows] == [4, 10, 11, 12, 13]
    assert first.next is not None
    after = QueueQuery(reviewer="Ada", listed=True, unfinished=True, after=first.next)
    assert _listed(store, after) == names[14:]
    by_state = QueueQuery(reviewer="Ada", listed=True, order="status", limit=100)
    assert _listed(store, by_state) == [*names[10:], *names[:4], *names[5:10], names[4]]
    for text in ("known", "item 7", "nothing"):
        assert _listed(store, QueueQuery(reviewer="Ada", listed=True, text=text)) == []
    (word,) = {row.answer.split()[0] for row in first.rows}
    assert _listed(store, QueueQuery(reviewer="Ada", listed=True, text=word, limit=100)) == names
    how_far = drawing.progress(store, "d", "Ada")
    assert (how_far.done, how_far.skipped, how_far.total) == (9, 1, len(names))


def test_what_changes_is_drawn_anew_behind_what_a_person_has_seen(
    store: Store, record: MakeRecord, said: Say
) -> None:
    _import(store, record, said, range(6), range(40))
    before = _drawn(store)
    names = list(before)
    for name in names[:12]:
        _decide(store, name)
    _import(store, record, said, range(10, 20), range(40, 60))
    after = _drawn(store)
    assert list(after)[:12] == names[:12]
    assert [name for name in after if name in names] == names  # nothing moves among the others
    assert all(after[name] == handle for name, handle in before.items())
    assert {f"item {n}" for n in range(60)} <= set(after)
    assert len(_known_in(list(after)[12:])) > len(_known_in(names[12:]))
    _plan(store, overlap=1, assigned_to=("Ada", "Ben"))
    mine, theirs = _drawn(store), _drawn(store, "Ben")
    assert list(mine)[:12] == names[:12]
    assert all(mine[name] == after[name] for name in mine)
    share = store.settings("d").share_of("Ada")
    assert share is not None
    fresh = [name for name in list(mine)[12:] if name.startswith("item")]
    own = QueueQuery(reviewer="Ada", share=share, sample=tuple(fresh))
    assert [row.item_id for row in paging.page(store, "d", own).rows] == fresh
    assert not {name for name in theirs if name.startswith("item")} & set(fresh)
    _plan(store, away=("Ada",))
    assert list(_drawn(store)) == names[:12]


def test_a_list_grows_where_people_take_what_others_have_left(
    store: Store, record: MakeRecord, said: Say
) -> None:
    _import(store, record, said, range(10), range(24))
    _plan(store, overlap=1)

    def walk(person: str, steps: int) -> list[str]:
        query = QueueQuery(
            reviewer=person,
            listed=True,
            blind=True,
            unfinished=True,
            reserve=True,
        )
        drawing.draw(store, "d", person)
        had = []
        for _ in range(steps):
            item = drawing.draw_next(store, "d", query)
            if item is None:
                break
            had.append(item)
            assert paging.standing(store, "d", query, item).number == 1
            _decide(store, item, person)
        assert list(_drawn(store, person))[-len(had) :] == had
        return had

    ada, ben = walk("Ada", 10), walk("Ben", 12)
    ada += walk("Ada", 100)
    others = [name for name in ada + ben if name.startswith("item")]
    assert sorted(others) == sorted({f"item {n}" for n in range(24)})
    for names in (ada, ben):
        n_checks = len(_known_in(names))
        assert abs(n_checks - len(names) / 4) <= 1.5
        assert not names[0].startswith("known")
    _plan(store, away=("Cleo",))
    assert walk("Cleo", 3) == []


def test_what_was_seen_before_there_were_lists_stands_first(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """As where known answers begin amid the work."""
    _import(store, record, said, range(6), range(20))
    for name in ("item 9", "item 3", "item 12"):
        _decide(store, name)
    names = list(_drawn(store))
    assert names[:3] == ["item 3", "item 9", "item 12"]
    assert len(_known_in(names)) == 6  # of the 17 others to come, at a quarter of the list


def test_a_list_goes_with_its_persons_name(store: Store, record: MakeRecord, said: Say) -> None:
    _import(store, record, said, range(6), range(8))
    ada, ben = _drawn(store), _drawn(store, "Ben")
    _decide(store, "item 1")
    store.rename_annotator("d", "Ada", "Eve")
    assert _drawn(store, "Eve") == ada
    _decide(store, "item 2", "Ben")
    store.merge_annotators("d", "Eve", "Ben")
    assert {*list(_drawn(store, "Ben"))[:2]} == {"item 1", "item 2"}
    assert {f"item {n}" for n in range(8)} <= set(_drawn(store, "Ben"))
    store.remove_annotator("d", "Ben")
    assert set(_drawn(store, "Ben").values()).isdisjoint(ben.values())
    store.delete_dataset("d")


def test_a_sample_brings_nobody_more_check_items_than_their_rate(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """Items of the sample are in a list in any case, but for those with known answers."""
    _import(store, record, said, range(12), range(24))
    sample = [f"known {n}" for n in range(12)] + ["item 3", "item 20"]
    for plan in ({}, {"overlap": 1}, {"overlap": 1, "assigned_to": ("Ada", "Ben")}):
        _plan(store, **plan)
        for person in ("Ada", "Ben"):
            drawing.draw(store, "d", person, sample)
            names = _listed(store, QueueQuery(reviewer=person, listed=True, limit=1000))
            assert len(names) == len(set(names))
            share = store.settings("d").share_of(person)
            asked = QueueQuery(reviewer=person, sample=tuple(sample), listed=True, limit=100)
            own = _listed(store, asked)
            assert own == [name for name in sample if name in own]  # in the sample's order
            wanted = QueueQuery(reviewer=person, share=share, sample=("item 3", "item 20"))
            assert {*_listed(store, wanted)} <= {*own} <= {*names}
            given = {item.item_id for item in check_items.given_to(store, "d", person).given}
            assert {name for name in own if name.startswith("known")} == given
            assert len(given) < 12 or not plan


def test_where_check_items_stand_follows_from_nothing_that_is_known(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """Neither from the dataset, its number or a name: every list has a secret of its own."""
    _import(store, record, said, range(20), range(40))
    patterns = set()
    for _ in range(4):
        patterns.add(tuple(_known_in(list(_drawn(store)))))
        with store.database.writing() as connection:
            for table in (queues, queue_items):
                connection.execute(delete(table))
    assert len(patterns) > 1


@pytest.mark.parametrize("known_first", [True, False], ids=["known answers first", "plan first"])
def test_shares_are_even_to_one_item_with_check_items_at_any_places(
    store: Store, record: MakeRecord, said: Say, known_first: bool
) -> None:
    gold = said("gold", (4, 9), kind=AnnotatorKind.GOLD)
    names = [f"{'item' if n % 4 else 'known'} {n}" for n in range(80)]
    everything = [record(name, *([gold] if name[0] == "k" else [])) for name in names]
    store.import_records("d", everything)
    rules = {"always_blind": True, "known": CheckRules(share=0.1)}
    plan = {"overlap": 2, "assigned_to": ("Ada", "Ben", "Cleo")}
    for change in (rules, plan) if known_first else (plan, rules):
        _plan(store, **change)
    lists = {person: list(_drawn(store, person)) for person in ("Ada", "Ben", "Cleo")}
    assert {len(names) for names in lists.values()} == {44}
    assert {len(_known_in(names)) for names in lists.values()} == {4}
    given = Counter(name for names in lists.values() for name in names if name[0] == "i")
    assert given == dict.fromkeys((name for name in names if name[0] == "i"), 2)
    plan_now = plans.plan(store, "d")
    assert plan_now is not None
    assert [person.assigned for person in plan_now.people] == [40] * 3
    assert plan_now.needed == 120
    _decide(store, lists["Ada"][0])
    _import(store, record, said, range(80, 90), range(90, 111))
    _plan(store, known=CheckRules(share=0.1))
    grown = {person: list(_drawn(store, person)) for person in lists}
    assert {len(names) - len(_known_in(names)) for names in grown.values()} == {54}
    for person, names in lists.items():  # an item stays whose it is
        assert {name for name in names if name[0] == "i"} <= set(grown[person])
    plan_now = plans.plan(store, "d")
    assert plan_now is not None
    assert [person.assigned for person in plan_now.people] == [54] * 3


def test_the_total_of_a_list_that_grows_does_not_rise(
    store: Store, record: MakeRecord, said: Say
) -> None:
    _import(store, record, said, range(5), range(12))
    _plan(store, overlap=1)
    query = QueueQuery(reviewer="Ada", listed=True, blind=True, unfinished=True, reserve=True)
    drawing.draw(store, "d", "Ada")
    totals, n_items = [review.progress(store, "d", "Ada").total], 0
    while (item := drawing.draw_next(store, "d", query)) is not None:
        totals.append(review.progress(store, "d", "Ada").total)
        _decide(store, item)
        totals.append(review.progress(store, "d", "Ada").total)
        n_items += 1
    assert set(totals) == {n_items}


def test_who_leaves_keeps_what_they_did_and_no_check_item_beyond_it(
    store: Store, record: MakeRecord, said: Say
) -> None:
    _import(store, record, said, range(20), range(40))
    _plan(store, overlap=1, assigned_to=("Ada", "Ben"))
    names = list(_drawn(store))
    first = _known_in(names)[0]
    for name in names[:first]:  # the next one is a check item
        _decide(store, name)
    _plan(store, away=("Ada",))
    assert list(_drawn(store)) == names[:first]
    assert check_items.given_to(store, "d", "Ada").given == ()


def test_an_item_that_became_a_check_item_is_not_drawn_into_a_list_that_has_it(
    store: Store, record: MakeRecord, said: Say
) -> None:
    _import(store, record, said, range(3), range(3))
    rules = store.settings("d").known
    _plan(store, overlap=1, known=None)
    drawing.draw(store, "d", "Ada")
    query = replace(ADA, unfinished=True, reserve=True)
    assert [drawing.draw_next(store, "d", query) for _ in range(3)] == [f"known {n}" for n in "012"]
    _plan(store, known=rules)
    drawing.draw(store, "d", "Ada")
    while drawing.draw_next(store, "d", query) is not None:
        pass
    assert sorted(_listed(store)) == sorted(
        f"{kind} {n}" for kind in ("item", "known") for n in "012"
    )


def test_the_total_of_a_list_that_grows_stays_the_same_while_people_work(
    store: Store, record: MakeRecord, said: Say
) -> None:
    _import(store, record, said, range(5), range(12))
    _plan(store, overlap=1)
    totals = dict[str, set[int]]()
    queries = {
        person: replace(ADA, reviewer=person, unfinished=True, reserve=True)
        for person in ("Ada", "Ben", "Cleo")
    }
    for person in queries:
        drawing.draw(store, "d", person)
    for turn in range(10):
        for person, query in queries.items():
            item = review.first_item(store, "d", replace(query, status=Status.NOT_ANNOTATED))
            if item is not None and store.review("d", item, person).version == 0:
                _decide(store, item, person, skip=turn % 5 == 3)
            how_far = review.progress(store, "d", person)
            totals.setdefault(person, set()).add(how_far.total)
            assert how_far.left >= 0
    assert all(len(total) == 1 for total in totals.values())
    ended = [review.progress(store, "d", person) for person in queries]
    assert all(how_far.left == 0 and how_far.by_others for how_far in ended)


def test_an_item_of_a_test_that_is_taken_back_is_the_next_one(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """No plan assigns it to anybody: else it would be left for ever."""
    _import(store, record, said, range(1, 3), range(4))
    _plan(store, overlap=1, assigned_to=("Ben", "Ada"))
    drawing.give_test(store, "d", "Ada", 1, 1)
    drawing.draw(store, "d", "Ada")
    for name in _listed(store):
        _decide(store, name)
    (test,) = check_items.given_to(store, "d", "Ada").tests
    write = SentOperation("again", 1, 1, SetStatus(status=Status.NOT_ANNOTATED))
    assert not store.apply("d", test.item_id, "Ada", [write]).refused
    query = replace(ADA, unfinished=True, share=store.settings("d").share_of("Ada"))
    assert review.first_item(store, "d", query) == test.item_id


def _walked(store: Store, query: QueueQuery, n_items: int) -> list[str]:
    """Decide so many items of a queue that grows, one after the other, and return their ids."""
    walked = list[str]()
    for _ in range(n_items):
        item = review.first_item(store, "d", query)
        if item is None:
            break
        walked.append(item)
        _decide(store, item, query.reviewer)
    return walked


def test_where_people_take_what_is_free_a_check_item_comes_as_the_filter_says(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """An item that the queue would not have shown next would be known for a check item."""
    gold = said("gold", (4, 9), kind=AnnotatorKind.GOLD)
    records = []
    for number in range(32):  # two detectors differ on each by another share of the answer
        differing = [said("one", (0, 1)), said("two", (0, number % 16 + 1))]
        lang, checked = ("de", "en")[number % 2], [gold] if number % 4 == 1 else []
        name = f"{'known' if checked else 'item'} {number}"
        made = record(name, *differing, *checked)
        records.append(
            made.model_copy(update={"item": made.item.model_copy(update={"lang": lang})})
        )
    store.import_records("d", records)
    rules = {"always_blind": True, "known": CheckRules(share=0.5), "overlap": 1}
    store.change_settings("d", lambda now: now.model_copy(update=rules))
    query = replace(ADA, unfinished=True, reserve=True)

    german = _walked(store, replace(query, lang="de"), 6)
    assert len(german) == 6
    assert {store.record("d", name).item.lang for name in german} == {"de"}
    by_id = _walked(store, replace(query, text="item"), 1)
    assert by_id == []  # ids are found in no list, and draw nothing into one

    assert _known_in(_walked(store, replace(query, order="disagreement"), 14))


def test_a_sample_that_is_drawn_grows_by_no_check_item(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """All its other items are in the list then, so that whatever came would be known for one."""
    _import(store, record, said, range(12), range(24))
    finished = [f"known {n}" for n in range(0, 12, 2)] + [f"item {n}" for n in range(12)]
    store.save_annotations("d", [(name, said("detector", (4, 9))) for name in finished])
    _plan(store, overlap=1, measurement=MeasurementPlan(annotator="detector"))
    drawing.draw(store, "d", "Ada", finished)
    asked = replace(ADA, sample=tuple(finished))
    before, query = _listed(store, asked), replace(ADA, reserve=True)
    total = review.progress(store, "d", "Ada").total
    while (item := drawing.draw_next(store, "d", query)) is not None:
        assert _listed(store, asked) == before
        _decide(store, item)
    for item in _listed(store):
        _decide(store, item)
    assert review.progress(store, "d", "Ada").done == total == len(_listed(store))
    assert len(_known_in(_listed(store))) > len(_known_in(before))


def test_where_one_stands_in_a_sample_is_looked_up_item_by_item(
    store: Store, record: MakeRecord
) -> None:
    if store.database.engine.dialect.name != "sqlite":
        pytest.skip("it counts the steps of SQLite")
    store.import_records("d", [record(f"item {n}") for n in range(2_000)])
    sample = tuple(f"item {n}" for n in range(0, 2_000, 4))
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    def watch(connection: Any, *_: object) -> None:
        connection.connection.driver_connection.set_progress_handler(count, 1_000)

    event.listen(store.database.engine, "before_cursor_execute", watch)
    query = QueueQuery(reviewer="Ada", sample=sample)
    assert paging.standing(store, "d", query, "item 400") == QueuePlace(101, 500)
    assert steps < 100  # thousands of SQLite's steps; to look at 500 × 2,000 pairs takes more

"""A list with check items: nothing of them is otherwise than of the others.

Everybody who is given one gets it, however many have had it, so that no item leaves such a list for
what others do; and all that a queue can ask for is the same of both kinds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import Pool

from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.oplog.operations import FinishItem, SentOperation, SetStatus
from spanlab.review import queue as review
from spanlab.review.span_editor import EditorMessage, ReviewQueue, exchange
from spanlab.review.writes import AddedEvidence, add_evidence
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    CheckRules,
    Item,
    QueueQuery,
    Record,
    Status,
)
from spanlab.storage import Store
from spanlab.worklists import check_items, drawing, paging, plans
from spanlab.worklists.sight import sight_of

_GOLD = Annotation(annotator="gold", kind=AnnotatorKind.GOLD)
_ADA = QueueQuery(reviewer="Ada", listed=True, blind=True, limit=500)
_NUMBERS = count()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Sixty items, the first half German, of which every fourth has gold labels."""
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")
    with Store.open(settings) as store:
        items = (
            Item(id=f"{n:02}", answer="said", lang="de" if n < 30 else "en") for n in range(60)
        )
        store.import_records(
            "d", [Record(item=i, annotations=(_GOLD,) * (int(i.id) % 4 == 0)) for i in items]
        )
        _set(store, known=CheckRules(labels=("gold",), share=0.2))
        yield store


def _set(store: Store, **rules: object) -> None:
    store.change_settings("d", lambda old: old.model_copy(update=rules))


def _write(
    store: Store, item: str, person: str, status: Status = Status.DONE, base: int = 0
) -> None:
    done = FinishItem() if status is Status.DONE else SetStatus(status=status)
    write = SentOperation(f"{next(_NUMBERS)}", base + 1, base, done)
    assert not store.apply("d", item, person, [write]).refused


def _listed(store: Store, person: str = "Ada") -> list[str]:
    drawing.draw(store, "d", person)
    query = QueueQuery(reviewer=person, listed=True, blind=True, limit=500)
    return [row.item_id for row in paging.page(store, "d", query).rows]


def _checks(store: Store, person: str = "Ada") -> set[str]:
    return {each.item_id for each in check_items.given_to(store, "d", person).given}


def _grow(store: Store, n_items: int, lang: str | None = None) -> list[str]:
    """Let Ada's list grow by so many items, and decide each."""
    query = QueueQuery(reviewer="Ada", listed=True, blind=True, reserve=True, lang=lang)
    grown = list[str]()
    for _ in range(n_items):
        item = drawing.draw_next(store, "d", query)
        assert item is not None
        grown.append(item)
        _write(store, item, "Ada")
    return grown


def test_what_others_finish_changes_nothing_of_a_list(store: Store) -> None:
    _set(store, overlap=1)
    drawing.draw(store, "d", "Ada")
    query = QueueQuery(reviewer="Ada", listed=True, blind=True, unfinished=True, reserve=True)
    while drawing.draw_next(store, "d", query) is not None:
        pass
    before, how_far = paging.page(store, "d", query), review.progress(store, "d", "Ada")
    for item in _listed(store):
        _write(store, item, "Ben")
        assert plans.reserve(store, "d", item, "Ada") == ()
    assert paging.page(store, "d", query) == before
    assert review.progress(store, "d", "Ada") == how_far


@pytest.mark.parametrize("overlap", [1, 2])
def test_two_people_who_talk_tell_no_check_item_by_what_one_sees_of_the_others_work(
    store: Store, overlap: int
) -> None:
    """Whatever Ben finishes, and takes back: before Ada has nothing more to take, and then."""
    _set(store, overlap=overlap, known=CheckRules(labels=("gold",), share=0.3))
    asked = QueueQuery(reviewer="Ada", listed=True, blind=True, reserve=True)
    ben = replace(asked, reviewer="Ben")
    for query in (asked, ben):
        drawing.draw(store, "d", query.reviewer)
    first = _grow(store, 2)[0]

    def seen() -> tuple[object, ...]:
        standing = (review.standing(store, "d", each, first) for each in (asked, german))
        return review.progress(store, "d", "Ada"), *standing

    german, before = replace(asked, lang="de"), list[tuple[object, ...]]()
    bens = [drawing.draw_next(store, "d", ben) for _ in range(25)]
    before.append(seen())
    for bens_item in filter(None, bens):
        for person in ("Ben", "Cleo")[:overlap]:
            _write(store, bens_item, person)
            before.append(seen())
    assert {*bens} & _checks(store, "Ben")
    assert len({*before}) == 1
    while (item := drawing.draw_next(store, "d", asked)) is not None:
        _write(store, item, "Ada")
    ended = seen()
    assert review.progress(store, "d", "Ada").left == 0
    for bens_item in filter(None, bens):
        _write(store, bens_item, "Ben", Status.NOT_ANNOTATED, base=1)
        assert seen() == ended


def test_a_blind_reviewer_asks_for_nothing_by_how_many_have_finished_it(store: Store) -> None:
    drawing.draw(store, "d", "Ada")
    for query in (replace(_ADA, blind=False), replace(_ADA, listed=False)):
        for asked in (replace(query, min_annotators=1), replace(query, max_annotators=0)):
            with pytest.raises(UsageError, match="is reviewed blind"):
                paging.page(store, "d", asked)
            with pytest.raises(UsageError, match="is reviewed blind"):
                drawing.draw_next(store, "d", asked)
    seen = QueueQuery(reviewer="adjudicated", max_annotators=0)
    assert paging.page(store, "d", seen).rows


def test_a_blind_reviewer_asks_for_what_a_detector_said_and_nobody_else(store: Store) -> None:
    found = Annotation(annotator="detector", kind=AnnotatorKind.DETECTOR)
    store.save_annotations("d", [(name, found) for name in _listed(store)[:9]])
    _write(store, _listed(store)[0], "Ben")
    n_done = {}
    for name in ("detector", "gold", "Ben"):
        query = replace(_ADA, detector=name, detector_status=Status.DONE)
        n_done[name] = len(paging.page(store, "d", query).rows)
    assert n_done == {"detector": 9, "gold": 0, "Ben": 0}


@pytest.mark.parametrize("plan", [{}, {"overlap": 1}], ids=["all", "what others leave"])
def test_a_list_is_in_no_order_that_other_items_are_in(store: Store, plan: dict[str, int]) -> None:
    """In import order what stands among items of another language would be a check item."""
    _set(store, **plan)
    names = _grow(store, 25) if plan else _listed(store)
    for kind in (_checks(store), set(names) - _checks(store)):
        places = [int(name) for name in names if name in kind]
        assert places != sorted(places)
    others = [name for name in names if name not in _checks(store)]
    assert {name < "30" for name in others[:12]} == {True, False}


def test_what_is_next_does_not_depend_on_the_filter_before(store: Store) -> None:
    """No filter lets check items heap up behind it: those of another language are let go."""
    _set(store, overlap=1, known=CheckRules(labels=("gold",), share=0.5))
    english = _grow(store, 10, lang="en")
    assert {int(name) >= 30 for name in english} == {True}
    rest = [name in _checks(store) for name in _grow(store, 8)]
    assert not any(one and after for one, after in pairwise(rest))


@pytest.mark.parametrize(
    "change", [{"overlap": 1}, {"known": CheckRules(labels=("gold",), share=0.3)}]
)
def test_what_is_drawn_anew_keeps_its_order(store: Store, change: dict[str, object]) -> None:
    _set(store, overlap=2, assigned_to=("Ada", "Ben", "Cleo"))
    before = _listed(store)
    for name in before[2:9]:
        _write(store, name, "Ada")
    _set(store, **change)
    after = _listed(store)
    assert after[:7] == before[2:9]
    kept = set(before[9:]) & set(after)
    assert [name for name in after if name in kept] == [name for name in before if name in kept]
    assert bool(_checks(store) & kept)


def test_gold_labels_that_come_later_push_no_check_item_out(store: Store) -> None:
    before, given = _listed(store), _checks(store)
    store.save_annotations("d", [(f"{n:02}", _GOLD) for n in range(1, 60, 8)])
    kept = [name for name in before if name in set(_listed(store))]
    lost = set(before) - set(kept)
    assert [name for name in _listed(store) if name in before] == kept
    assert {name for name in lost if name in given} <= given
    assert len(_checks(store)) <= len(given)


def test_who_has_nothing_left_to_do_gets_no_check_items_alone(store: Store) -> None:
    _set(store, overlap=1, assigned_to=("Ada", "Ben"))
    names = _listed(store)
    for name in names[:3]:
        _write(store, name, "Ada")
    _set(store, away=("Ada",))
    assert _listed(store) == names[:3]


def test_a_check_item_is_reserved_as_others_are(store: Store) -> None:
    _set(store, overlap=1)
    drawing.draw(store, "d", "Ada")
    query = QueueQuery(reviewer="Ada", listed=True, blind=True, reserve=True)
    for n_held in range(1, 16):
        assert drawing.draw_next(store, "d", query) is not None
        assert plans.n_held(store, "d", "Ada") == n_held
    assert _checks(store)


def test_who_has_skipped_an_item_is_still_blind(store: Store) -> None:
    """They may take it up again, and would have seen what others marked in it."""
    _set(store, overlap=1, assigned_to=("Ada", "Ben"))
    names = _listed(store)
    for name in names:
        _write(store, name, "Ada", Status.SKIPPED)
    assert sight_of(store, "d", "Ada").blind
    for name in names:
        assert sight_of(store, "d", "Ada").blind
        _write(store, name, "Ada", base=1)
    assert not sight_of(store, "d", "Ada").blind


_NO_PLAN: dict[str, object] = {}
_PLANS = [_NO_PLAN, *({"overlap": n, "assigned_to": ("Ada", "Ben")} for n in (1, 2))]


@pytest.mark.parametrize("plan", _PLANS, ids=["no plan", "one of two", "two of two"])
@pytest.mark.parametrize("share", [0.05, 0.4])
def test_another_share_of_check_items_tells_nobody_which_they_are(
    store: Store, plan: dict[str, object], share: float
) -> None:
    """Whatever came into a list alone, or left it, would be one."""
    _set(store, **plan)
    before, given = _listed(store), _checks(store)
    for name in before[:8]:
        _write(store, name, "Ada")
    _set(store, known=CheckRules(labels=("gold",), share=share))
    assert (_listed(store), _checks(store)) == (before, given)
    store.import_records(
        "d", [Record(item=Item(id=f"{n}", answer="said")) for n in range(100, 120)]
    )
    came = set(_listed(store)) - set(before)
    n_others = sum(len(name) == 3 for name in came)
    assert n_others in {10, 20}
    assert len(came) - n_others <= share / (1 - share) * n_others + 1


def test_gold_labels_that_go_and_come_back_tell_nobody_which_are_check_items(store: Store) -> None:
    _set(store, overlap=1, assigned_to=("Ada", "Ben"))
    before, given = _listed(store), _checks(store)
    store.remove_annotator("d", "gold")
    assert set(before) <= set(_listed(store))
    assert _checks(store) == given
    store.save_annotations("d", [(f"{n:02}", _GOLD) for n in range(0, 60, 4)])
    assert (_listed(store), _checks(store)) == (before, given)


def test_check_items_that_end_and_begin_again_are_the_same(store: Store) -> None:
    """They stay meanwhile: what left a list alone would have been one."""
    _set(store, overlap=1, assigned_to=("Ada", "Ben"))
    before, given = _listed(store), _checks(store)
    _write(store, before[0], "Ada")
    rules = store.settings("d").known
    _set(store, known=None)
    meanwhile = _listed(store)
    assert [name for name in meanwhile if name in before] == before
    _set(store, known=rules)
    assert (_listed(store), _checks(store)) == (before, given)


def test_no_reviewer_adds_evidence_by_which_others_would_tell_check_items(store: Store) -> None:
    """Where one person has each item, what somebody else has added to would be a check item."""
    _set(store, overlap=1, assigned_to=("Ada", "Ben"))
    for item in _listed(store, "Ben"):
        with pytest.raises(UsageError, match="add no evidence"):
            add_evidence(store, "d", item, AddedEvidence(text="It is so."), reviewer="Ben")
    assert not any(record.item.passages for record in store.records("d"))
    assert add_evidence(store, "d", "00", AddedEvidence(text="It is so."))  # who adjudicates


def test_a_merged_list_brings_no_check_items_that_nobody_has_begun(store: Store) -> None:
    lists = {person: _listed(store, person) for person in ("Ada", "Ben")}
    begun = next(name for name in lists["Ben"] if name in _checks(store, "Ben") - _checks(store))
    for person, name in (("Ben", begun), ("Ada", lists["Ada"][0])):
        _write(store, name, person)
    store.merge_annotators("d", "Ben", "Ada")
    assert set(_listed(store)) == {*lists["Ada"], begun}
    assert begun in _checks(store)


def test_no_filter_tells_a_check_item_by_how_many_items_it_has(store: Store) -> None:
    """A few items of a filter are those in the list, before an item is drawn and after."""
    _set(store, overlap=1, known=CheckRules(labels=("gold",), share=0.3))
    found = Annotation(annotator="detector", kind=AnnotatorKind.DETECTOR)
    store.save_annotations("d", [(f"{n:02}", found) for n in range(0, 60, 2)])
    asked = QueueQuery(reviewer="Ada", listed=True, blind=True, reserve=True)
    narrow = (
        replace(asked, lang="de"),
        replace(asked, detector="detector", detector_status=Status.DONE),
        replace(asked, text="said"),
    )
    drawing.draw(store, "d", "Ada")
    names = _grow(store, 1)

    def totals() -> list[int]:
        return [review.standing(store, "d", each, names[0]).total for each in narrow]

    before = totals()
    for _ in range(24):
        names += _grow(store, 1)
        (row,) = [r for r in paging.page(store, "d", _ADA).rows if r.item_id == names[-1]]
        has = row.lang == "de", int(row.item_id) % 2 == 0, True
        now = totals()
        assert now == [total + one for total, one in zip(before, has, strict=True)]
        before = now
    assert _checks(store)


def test_nothing_that_was_not_there_for_a_filter_comes_later(store: Store) -> None:
    """A check item that no filter had brought would be told by that."""
    _set(store, overlap=3, known=CheckRules(labels=("gold",), share=0.25))
    asked = QueueQuery(reviewer="Ada", listed=True, blind=True, reserve=True)
    drawing.draw(store, "d", "Ada")
    _grow(store, 1)
    narrow = replace(asked, text="said")
    assert drawing.draw_next(store, "d", narrow) is None
    answer = exchange(store, ReviewQueue("d", replace(narrow, text="x"), None), EditorMessage())
    assert answer.json["empty"] == "No item fits this filter. Widen it under Queue."
    for person in ("Ada", "Ben", "Cleo"):
        query, german = replace(asked, reviewer=person), list[str]()
        drawing.draw(store, "d", person)
        while (item := drawing.draw_next(store, "d", replace(query, lang="de"))) is not None:
            german.append(item)
            _write(store, item, person)
        came = [drawing.draw_next(store, "d", query) for _ in range(40)]
        assert {int(item) >= 30 for item in came if item} == {True}
        assert _checks(store, person) & {*german}
        assert _checks(store, person) & {*came}


def _take_few(connection: DBAPIConnection, *_: object) -> None:
    assert isinstance(connection, sqlite3.Connection)
    connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 700)


def test_many_gold_labels_are_not_named_in_one_statement(store: Store) -> None:
    """A statement of SQLite takes some 32,000 values, here 700; one of PostgreSQL 65,000."""
    items = (Item(id=f"m{n}", answer="said", lang="en") for n in range(1800))
    records = [Record(item=i, annotations=(_GOLD,) * (int(i.id[1:]) % 2)) for i in items]
    store.import_records("d", records)
    _set(store, overlap=1, known=CheckRules(labels=("gold",), share=0.5))
    drawing.draw(store, "d", "Ada")
    event.listen(Pool, "checkout", _take_few)
    try:
        _grow(store, 12)
        named, said = (paging.page(store, "d", replace(_ADA, text=t)).rows for t in ("m", "said"))
    finally:
        event.remove(Pool, "checkout", _take_few)
    assert len(_checks(store)) > 2
    assert not named  # it is in ids alone, which might tell of check items
    assert len(said) >= 12


def test_a_check_item_that_is_due_comes_in_another_language_that_has_items_left(
    store: Store,
) -> None:
    """All check items are German and most others English: the total stays as it was told."""
    records = [
        Record(
            item=Item(id=f"{n}", answer="said", lang="de" if n % 3 == 0 or n < 8 else "en"),
            annotations=(_GOLD,) * (n < 8),
        )
        for n in range(40)
    ]
    store.import_records("german", records)
    rules = {"overlap": 3, "known": CheckRules(labels=("gold",), share=0.2)}
    store.change_settings("german", lambda old: old.model_copy(update=rules))
    for person in ("Ada", "Ben", "Cleo"):
        drawing.draw(store, "german", person)
        query = QueueQuery(reviewer=person, listed=True, blind=True, reserve=True)
        totals = {review.progress(store, "german", person).total}
        for _ in range(9):
            assert drawing.draw_next(store, "german", query) is not None
            totals.add(review.progress(store, "german", person).total)
        assert len(totals) == 1

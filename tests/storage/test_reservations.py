"""Plans of second annotation: what is reserved or assigned goes to as many people as it is to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from threading import Barrier

import pytest
from random_queues import is_of_share
from sqlalchemy import event, text

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.base.settings import Settings
from spanlab.oplog.operations import (
    CommentSpan,
    FinishItem,
    Operation,
    SentOperation,
    SetStatus,
    Undo,
)
from spanlab.people.overview import oversee
from spanlab.review.queue import first_item, neighbours, progress
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AssignedShare,
    CheckRules,
    DatasetSettings,
    QueueQuery,
    Record,
    Status,
)
from spanlab.schema.progress import PersonProgress, QueueProgress
from spanlab.storage import Store
from spanlab.storage.engine import Database
from spanlab.worklists import drawing, paging, plans

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]

CHECKS = CheckRules(labels=("gold",))


@pytest.fixture
def planned(store: Store, record: MakeRecord, said: Say) -> Store:
    """Three items for two people each; Zoe has finished the first, and skipped the second."""
    zoe, status = said("Zoe", kind=AnnotatorKind.PERSON), Status.SKIPPED
    skipped = zoe.model_copy(update={"status": status})
    store.import_records("d", [record("a", zoe), record("b", skipped), record("c")])
    _plan(store, 2)
    return store


def _plan(store: Store, overlap: int) -> None:
    store.change_settings("d", lambda now: now.model_copy(update={"overlap": overlap}))


def _queue(reviewer: str) -> QueueQuery:
    return QueueQuery(reviewer=reviewer, unfinished=True, reserve=True)


def _offered(store: Store, reviewer: str) -> list[str]:
    return [row.item_id for row in paging.page(store, "d", _queue(reviewer)).rows]


def _write(store: Store, item: str, reviewer: str, operation: Operation) -> None:
    base = store.review("d", item, reviewer).version
    write = SentOperation(f"{item} {reviewer}", base + 1, base, operation)
    assert not store.apply("d", item, reviewer, [write]).refused


def test_an_item_goes_to_as_many_people_as_it_is_to_however_many_ask_at_once(
    planned: Store,
) -> None:
    asking = Barrier(6, timeout=60)

    def ask(number: int) -> tuple[str, ...]:
        asking.wait()
        return plans.reserve(planned, "d", "c", f"person {number}")

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(ask, range(6))).count(()) == 2
    holders = [f"person {n}" for n in range(6) if "c" in _offered(planned, f"person {n}")]
    assert len(holders) == 2
    assert not any(plans.reserve(planned, "d", "c", holder) for holder in holders)
    assert plans.reserve(planned, "d", "c", "Ada") == tuple(holders)


def test_beside_check_items_an_item_is_reserved_for_whoever_has_it_in_their_list(
    planned: Store,
) -> None:
    planned.change_settings("d", lambda now: now.model_copy(update={"known": CHECKS}))
    assert not any(plans.reserve(planned, "d", "c", name) for name in ("Ada", "Ben", "Cleo"))
    assert [plans.n_held(planned, "d", name) for name in ("Ada", "Ben", "Cleo")] == [1, 1, 1]


@pytest.mark.parametrize("known", [None, CHECKS], ids=["no-checks", "checks"])
def test_without_a_plan_nothing_is_reserved(known: CheckRules | None, planned: Store) -> None:
    changes = {"overlap": 0, "known": known}
    planned.change_settings("d", lambda now: now.model_copy(update=changes))
    assert plans.reserve(planned, "d", "c", "Ada") == ()
    assert plans.n_held(planned, "d", "Ada") == 0


def test_a_reservation_counts_until_its_holder_has_decided(planned: Store) -> None:
    """One who has finished counts as that and not twice; what is skipped is free again."""
    assert not plans.reserve(planned, "d", "a", "Ada")
    assert plans.reserve(planned, "d", "a", "Ben") == ("Ada", "Zoe")
    assert _offered(planned, "Ben") == ["b", "c"]
    _write(planned, "a", "Ada", SetStatus(status=Status.SKIPPED))
    assert _offered(planned, "Ben") == ["a", "b", "c"]
    _write(planned, "a", "Ada", Undo())
    assert _offered(planned, "Ben") == ["b", "c"]
    assert not plans.reserve(planned, "d", "c", "Ada")
    _write(planned, "c", "Ada", FinishItem())
    assert not plans.reserve(planned, "d", "c", "Ben")
    assert plans.reserve(planned, "d", "c", "Cleo") == ("Ada", "Ben")
    assert _offered(planned, "Ada") == ["a", "b"]


@pytest.mark.parametrize("passed", [3601, -86_400], ids=["an-hour", "clock-set-back"])
def test_a_reservation_ends_by_itself_unless_its_holder_writes(
    settings: Settings, planned: Store, passed: int
) -> None:
    _plan(planned, 1)
    for item in ("b", "c"):
        assert not plans.reserve(planned, "d", item, "Ada")
    database = Database(settings.database_url)
    with database.writing() as connection:
        connection.execute(text(f"UPDATE reservations SET until = until - {passed}"))
    database.close()
    _write(planned, "c", "Ada", CommentSpan(text="reading"))
    query = _queue("Ben")
    assert [row.item_id for row in paging.page(planned, "d", query).rows] == ["b"]
    assert not plans.reserve(planned, "d", "b", "Ben")
    for n_more, person in enumerate(("Ben", "Ada")):  # who had it open all the while
        _write(planned, "b", person, FinishItem())
        plan = plans.plan(planned, "d")
        assert plan is not None
        assert (plan.done, plan.surplus) == (2, n_more)
    (told,) = oversee(planned, "d").tables()
    assert any(remark.startswith("1 review more than the plan asks") for remark in told.remarks)
    planned.delete_dataset("d")
    assert planned.datasets() == []


def test_what_a_browser_is_told_of_a_plan_is_reserved_for_it(planned: Store) -> None:
    """The items beside the open one, too: it goes on to them without asking again."""
    assert first_item(planned, "d", _queue("Ada")) == "a"
    assert neighbours(planned, "d", _queue("Ada"), "a").next == "b"
    assert first_item(planned, "d", _queue("Ben")) == "b"
    assert neighbours(planned, "d", _queue("Ben"), "b").next == "c"
    assert first_item(planned, "d", _queue("Cleo")) == "c"
    assert first_item(planned, "d", _queue("Dan")) is None


@pytest.mark.parametrize(("people", "each"), [(1, 1), (3, 2), (4, 2), (7, 3), (23, 2), (2, 5)])
def test_shares_are_equal_and_every_item_is_in_as_many(people: int, each: int) -> None:
    shares, n_items = [AssignedShare(who, people, each) for who in range(people)], people * 12
    holders = [tuple(s.number for s in shares if is_of_share(s, item)) for item in range(n_items)]
    per_item = min(people, each)
    assert {len(who) for who in holders} == {per_item}
    assert Counter(chain(*holders)) == dict.fromkeys(range(people), 12 * per_item)
    together = Counter(holders)
    assert len(together) >= (people if each < people else 1)


def test_a_queue_has_what_is_assigned_to_its_reviewer(planned: Store) -> None:
    # Round 0 of three people goes one step: "a" to 0 and 1, "b" to 1 and 2, "c" to 2 and 0.
    queues = [QueueQuery(reviewer="", share=AssignedShare(who, 3, 2)) for who in range(3)]
    shares = [[row.item_id for row in paging.page(planned, "d", query).rows] for query in queues]
    assert shares == [["a", "c"], ["a", "b"], ["b", "c"]]
    assert paging.neighbour(planned, "d", queues[0], "a") == "c"
    with pytest.raises(UsageError, match="person 3 is none of 3"):
        AssignedShare(3, 3, 2)


def test_totals_of_a_plan_are_what_it_assigns_to_each_person(planned: Store) -> None:
    """Ada, Ben and Zoe get two of three items each; Zoe has done one of hers and skipped one."""
    _plan(planned, 0)
    assert plans.plan(planned, "d") is None
    people = ("Ada", "Ben", "Zoe")
    plan = {"overlap": 2, "assigned_to": people}
    planned.change_settings("d", lambda now: now.model_copy(update=plan))
    share = {name: AssignedShare(number, 3, 2) for number, name in enumerate(people)}
    turns = (0, 2, 1)  # of a, b and c: each begins in the ring where the one before has ended
    for turn, item in zip(turns, "abc", strict=True):
        if is_of_share(share["Ada"], turn):
            _write(planned, item, "Ada", FinishItem())
    (foreign,) = [n for n in range(3) if not is_of_share(share["Ben"], turns[n])]
    _write(planned, "abc"[foreign], "Ben", FinishItem())
    _write(planned, "c", "Guest", FinishItem())
    zoe = [
        is_of_share(share["Zoe"], turn) for turn in turns
    ]  # of a, which she has done, and b, skipped
    found = plans.plan(planned, "d")
    assert found is not None
    assert found.people == (
        PersonProgress("Ada", assigned=2, done=2),
        PersonProgress("Ben", assigned=2, beyond=1),
        PersonProgress(
            "Zoe", assigned=2, done=int(zoe[0]), skipped=int(zoe[1]), beyond=int(not zoe[0])
        ),
        PersonProgress("Guest", assigned=None, beyond=1),
    )
    assert (found.needed, found.done) == (6, 2 + int(zoe[0]))
    assert [each.left for each in found.people[:2]] == [0, 2]


def test_totals_of_a_plan_without_names_are_what_still_needs_a_person(planned: Store) -> None:
    _plan(planned, 1)
    found = plans.plan(planned, "d")
    assert found is not None
    assert (found.needed, found.done) == (3, 1)
    assert found.of("Zoe") == PersonProgress("Zoe", assigned=3, done=1, skipped=1)
    assert not plans.reserve(planned, "d", "c", "Ada")
    found = plans.plan(planned, "d")
    assert found is not None
    assert [each.left for each in found.people] == [1]  # what Ada holds may become free
    free = QueueProgress(0, 0, 3, planned=True, by_others=1)
    assert progress(planned, "d", "Ben") == free
    assert not plans.reserve(planned, "d", "b", "Ada")
    assert progress(planned, "d", "Ben") == replace(free, waiting=True)
    for item in "bc":
        _write(planned, item, "Ada", SetStatus(status=Status.SKIPPED))
    assert progress(planned, "d", "Ben") == free
    _write(planned, "c", "Ada", FinishItem())
    assert progress(planned, "d", "Ben") == replace(free, by_others=2)


def test_what_enough_others_finished_is_not_left_to_who_has_only_begun_it(planned: Store) -> None:
    _plan(planned, 1)
    drawing.draw(planned, "d", "Ben")
    query = replace(_queue("Ben"), listed=True)
    assert first_item(planned, "d", query) == "b"
    for operation in (FinishItem(), SetStatus(status=Status.NOT_ANNOTATED)):
        _write(planned, "b", "Ben", operation)
    _write(planned, "b", "Ada", FinishItem())
    assert paging.page(planned, "d", query).rows == ()
    assert first_item(planned, "d", query) == "c"
    _write(planned, "c", "Ben", FinishItem())
    ended = QueueProgress(1, 0, 3, planned=True, waiting=True, by_others=2)
    assert progress(planned, "d", "Ben") == ended


def test_to_reserve_an_item_reads_nothing_of_the_others(planned: Store) -> None:
    if not planned.database.is_sqlite:
        return  # it has statistics, and plans by them
    asked: list[tuple[str, tuple[object, ...]]] = []

    def note(_conn: object, _cursor: object, statement: str, values: object, *_: object) -> None:
        assert isinstance(values, tuple)
        asked.append((statement, values))

    event.listen(planned.database.engine, "before_cursor_execute", note)
    assert not plans.reserve(planned, "d", "c", "Ada")
    event.remove(planned.database.engine, "before_cursor_execute", note)
    steps = list[str]()
    with planned.database.reading() as connection:
        for statement, values in asked:
            if "annotations" in statement:
                explained = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
                steps += [row.detail for row in explained if "annotations_" in row.detail]
    assert steps
    assert all("position" in step for step in steps), steps


def test_a_snapshot_is_one_state_until_its_thread_writes(planned: Store) -> None:
    with planned.database.snapshot():
        before = planned.settings("d")
        with ThreadPoolExecutor(1) as another:
            another.submit(planned.change_settings, "d", _for_nine).result()
        assert planned.settings("d") is before  # looked up once
        assert not plans.reserve(planned, "d", "c", "Ada")  # written in between
        assert planned.settings("d").overlap == 9
        assert plans.n_held(planned, "d", "Ada") == 1
        with pytest.raises(NotFoundError):
            planned.settings("elsewhere")
        assert planned.settings("d").overlap == 9
    assert planned.settings("d") is not planned.settings("d")


def _for_nine(now: DatasetSettings) -> DatasetSettings:
    return now.model_copy(update={"overlap": 9})


def test_what_is_reserved_for_long_enough_is_not_written_again(planned: Store) -> None:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    _plan(planned, 1)
    assert not plans.reserve(planned, "d", "c", "Ada")
    event.listen(planned.database.engine, "before_cursor_execute", note)
    assert not plans.reserve(planned, "d", "c", "Ada")
    assert all(statement.startswith(("SELECT", "BEGIN")) for statement in statements)
    assert plans.reserve(planned, "d", "c", "Ben") == ("Ada",)


def test_what_people_have_finished_counts_whoever_the_plan_names_then(
    store: Store, record: MakeRecord
) -> None:
    """Ben leaves, Dora comes: nobody does again what is done, and nothing done is lost."""
    names = [f"item {number}" for number in range(12)]
    store.import_records("d", map(record, names))

    def assign(*people: str) -> None:
        plan = {"overlap": 1, "assigned_to": people}
        store.change_settings("d", lambda now: now.model_copy(update=plan))

    def left() -> tuple[int, dict[str, int]]:
        found = plans.plan(store, "d")
        assert found is not None
        return found.done, {person.annotator: person.left for person in found.people}

    assign("Ada", "Ben")
    for number, name in enumerate(names):
        is_ada = is_of_share(AssignedShare(0, 2, 1), number)
        if is_ada or number < 6:
            _write(store, name, "Ada" if is_ada else "Ben", FinishItem())
    assert left() == (9, {"Ada": 0, "Ben": 3})
    assign("Ada", "Ben", "Dora")
    done, remaining = left()
    assert (done, sum(remaining.values())) == (9, 3)
    plans.take_back(store, "d", "Ben")
    assign("Ada", "Dora")
    done, remaining = left()
    assert (done, remaining["Ben"], sum(remaining.values())) == (9, 0, 3)
    assign("Dora")
    assert left() == (9, {"Dora": 3, "Ada": 0, "Ben": 0})
    assign("Dora", "Ben")
    done, remaining = left()
    assert (done, sum(remaining.values())) == (9, 3)


def test_marks_of_people_whom_no_plan_names_finish_nothing_for_those_it_names(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """Neither at first nor once the plan has changed: such as imported marks."""
    old = said("Old", kind=AnnotatorKind.PERSON)
    store.import_records("d", [record(f"item {number}", old) for number in range(6)])

    def left(*people: str) -> int:
        plan = {"overlap": 1, "assigned_to": people}
        store.change_settings("d", lambda now: now.model_copy(update=plan))
        found = plans.plan(store, "d")
        assert found is not None
        assert found.needed == 6
        return 6 - found.done

    assert left("Ada", "Ben") == 6
    _write(store, "item 0", "Ada", FinishItem())
    assert left("Ada", "Ben", "Cleo") == 5
    for person in ("Ada", "Ben", "Cleo"):
        drawing.draw(store, "d", person)
        share = store.settings("d").share_of(person)
        query = replace(_queue(person), listed=True, share=share)
        n_left = progress(store, "d", person).left
        assert n_left == len(paging.page(store, "d", query).rows)
        assert n_left + (person == "Ada") == 2
    item = first_item(store, "d", query)
    assert item is not None
    _write(store, item, "Cleo", FinishItem())
    assert plans.reserve(store, "d", item, "Ada") == ("Cleo",)
    assert left("Ada", "Ben") == 4

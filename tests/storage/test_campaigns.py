"""Known answers among people's items, tests before they begin, who left, who read what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from spanlab.base.errors import UsageError
from spanlab.oplog.operations import FinishItem, SentOperation, SetStatus
from spanlab.schema import Annotation, AnnotatorKind, CheckRules, QueueQuery, Record, Status
from spanlab.storage import Store
from spanlab.worklists import check_items, drawing, entrances, paging, plans
from spanlab.worklists.entrances import Entrance

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]

PEOPLE = ("Ada", "Ben", "Cleo")


def _import(store: Store, record: MakeRecord, said: Say, *, known: int, others: int) -> None:
    gold = said("gold", (4, 9), kind=AnnotatorKind.GOLD)
    checks = [record(f"known {number}", gold) for number in range(known)]
    store.import_records("d", [*checks, *(record(f"item {n}") for n in range(others))])
    store.change_settings(
        "d",
        lambda now: now.model_copy(
            update={"always_blind": True, "known": CheckRules(share=0.25, test_items=3)}
        ),
    )


def _decide(store: Store, item: str, person: str, *, skip: bool = False) -> None:
    base = store.review("d", item, person).version
    done = SetStatus(status=Status.SKIPPED) if skip else FinishItem()
    write = SentOperation(f"{item} {person}", base + 1, base, done)
    assert not store.apply("d", item, person, [write]).refused


def test_a_test_is_given_once_and_another_try_has_other_items(
    store: Store, record: MakeRecord, said: Say
) -> None:
    _import(store, record, said, known=7, others=2)
    for _ in range(2):
        drawing.give_test(store, "d", "Ada", 1, 3)
    drawing.give_test(store, "d", "Ada", 2, 3)
    found = check_items.given_to(store, "d", "Ada")
    first, second = ({each.item_id for each in found.test(n)} for n in (1, 2))
    assert (len(first), len(second), len(first | second), found.hidden) == (3, 3, 6, ())
    with pytest.raises(UsageError, match=r"a test needs 3 check items .* has 1"):
        drawing.give_test(store, "d", "Ada", 3, 3)
    at = datetime(2026, 3, 2, tzinfo=UTC)
    failed = Entrance("Ada", 1, 0.25, passed=False, at=at)
    for entrance in (failed, Entrance("Ada", 1, 0.9, passed=True, at=at)):  # the first one stays
        entrances.enter(store, "d", entrance)
    entrances.enter(store, "d", Entrance("Ada", 0, None, passed=True, at=at))
    assert entrances.entered(store, "d") == (Entrance("Ada", 0, None, passed=True, at=at), failed)
    for version in (1, 2, 2):
        entrances.confirm_read(store, "d", "Ada", version)
    assert [each[:2] for each in entrances.readings(store, "d")] == [("Ada", 1), ("Ada", 2)]
    store.delete_dataset("d")


def test_what_somebody_who_left_has_not_finished_goes_to_others_and_no_item_beyond_its_overlap(
    store: Store, record: MakeRecord
) -> None:
    store.import_records("d", [record(f"{number:02}") for number in range(24)])
    people = (*PEOPLE, "Dan")
    plan = {"overlap": 2, "assigned_to": people}
    store.change_settings("d", lambda now: now.model_copy(update=plan))

    def offered(person: str) -> list[str]:
        share = store.settings("d").share_of(person)
        query = QueueQuery(reviewer=person, unfinished=True, reserve=True, share=share)
        return [row.item_id for row in paging.page(store, "d", query).rows] if share else []

    before = {person: offered(person) for person in people}
    for item in before["Ben"][:4]:
        _decide(store, item, "Ben")
    plans.take_back(store, "d", "Ben")
    assert store.settings("d").away == ("Ben",)
    assert offered("Ben") == []
    plan_now = plans.plan(store, "d")
    assert plan_now is not None
    ben = plan_now.of("Ben")
    assert ben is not None
    assert (ben.assigned, ben.done, ben.left) == (4, 4, 0)
    assert sum(person.assigned or 0 for person in plan_now.people) == 48
    for person in ("Ada", "Cleo", "Dan"):
        assert set(before[person]) <= set(offered(person))
        for item in offered(person)[:9]:
            _decide(store, item, person)
    plans.give_back(store, "d", "Ben")  # and comes again: what others have done for him is done
    for person in people:
        for item in offered(person):
            assert not plans.reserve(store, "d", item, person)
            _decide(store, item, person)
    done = Counter(item for _, item, *_ in plans.finished(store, "d"))
    assert set(done.values()) == {2}
    assert len(done) == 24

"""Queues: random queries against sorting all records, and what a list shows of an item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.oplog.operations import SentOperation, SetStatus
from spanlab.schema import Annotation, QueueCursor, QueueQuery, Record, Status
from spanlab.storage import Store
from spanlab.worklists import paging

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]


def test_a_queue_without_items_has_no_pages(store: Store, record: MakeRecord) -> None:
    store.import_records("d", [record("a")])
    beyond = paging.page(store, "d", QueueQuery(reviewer="rev", after=QueueCursor(5)))
    assert (beyond.rows, beyond.previous, beyond.next) == ((), None, None)


def test_finishing_an_item_goes_on_from_where_it_was(
    store: Store, record: MakeRecord, said: Say
) -> None:
    records = [record(str(n), said("det", (0, n + 1))) for n in range(3)]
    store.import_records("d", records)
    store.save_annotations("d", [(str(n), said("two", (0, 1))) for n in range(3)])
    # Disagreement 1 - 1/(n + 1): item 2 comes first, then 1, then 0.
    query = QueueQuery(reviewer="me", order="disagreement", status=Status.NOT_ANNOTATED)
    first = paging.page(store, "d", query).rows[0]
    assert first.item_id == "2"
    done = SetStatus(status=Status.DONE)
    store.apply("d", "2", "me", [SentOperation("s", 1, 0, done)])
    assert paging.neighbour(store, "d", replace(query, after=first.cursor), "2", 1) == "1"


def test_a_long_text_shows_its_beginning_in_one_line(store: Store, record: MakeRecord) -> None:
    store.import_records("d", [record("a", answer="  one\r\n\x00two " + "x" * 500)])
    answer = paging.page(store, "d", QueueQuery(reviewer="me")).rows[0].answer
    assert answer.startswith("one \x00two xxx")
    assert (len(answer), answer[-1]) == (160, "…")


def test_questions_that_make_no_sense_are_refused(store: Store, record: MakeRecord) -> None:
    store.import_records("d", [record("item 1")])
    anything = QueueQuery(reviewer="rev")
    with pytest.raises(UsageError, match="limit 0"):
        QueueQuery(reviewer="me", limit=0)
    with pytest.raises(UsageError, match="not both"):
        QueueQuery(reviewer="me", after=QueueCursor(1), before=QueueCursor(2))
    with pytest.raises(UsageError, match="needs the name of a detector"):
        QueueQuery(reviewer="me", detector_status=Status.DONE)
    with pytest.raises(UsageError, match="step 2"):
        paging.neighbour(store, "d", anything, "item 1", 2)
    with pytest.raises(NotFoundError, match="'d' has no item 'item x'"):
        paging.neighbour(store, "d", anything, "item x", 1)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"status": Status.NOT_ANNOTATED},
        {"unfinished": True},
        {"status": Status.NOT_ANNOTATED, "blind": True, "detector": "offline"},
        {"status": Status.DONE},
        {"reverse": True},
    ],
)
def test_an_item_is_said_to_stand_where_its_queue_has_it(
    store: Store, record: MakeRecord, asked: dict[str, Any]
) -> None:
    store.import_records("d", [record(f"i{number}") for number in range(7)])
    for number, status in ((0, Status.DONE), (3, Status.SKIPPED), (4, Status.DONE)):
        write = SentOperation(f"{number}", 1, 0, SetStatus(status=status))
        assert not store.apply("d", f"i{number}", "Ada", [write]).refused
    query = QueueQuery(reviewer="Ada", **asked)
    listed = [row.item_id for row in paging.page(store, "d", query).rows]
    for name in (f"i{number}" for number in range(7)):
        place = paging.standing(store, "d", query, name)
        stands = listed.index(name) + 1 if name in listed else None
        assert (place.number, place.total) == (stands, len(listed))

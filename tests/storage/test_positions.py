"""Items by their place in import order, as runs over a dataset ask for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spanlab.base.errors import NotFoundError
from spanlab.schema import Annotation, QueueQuery, Record, Status
from spanlab.storage import Store
from spanlab.storage.sight import Sight
from spanlab.worklists import paging


def test_positions_are_the_places_of_all_that_a_filter_lets_through(
    store: Store, record: Callable[..., Record], said: Callable[..., Annotation]
) -> None:
    failed = said("det", status=Status.FAILED)
    store.import_records(
        "d", [record("a", said("det", (0, 3))), record("b"), record("c", failed), record("e")]
    )
    queries = {
        status: QueueQuery(reviewer="det", status=status, limit=1)
        for status in (Status.NOT_ANNOTATED, Status.FAILED, Status.SKIPPED)
    }
    assert paging.positions(store, "d", queries[Status.NOT_ANNOTATED]) == [1, 3]
    assert paging.positions(store, "d", queries[Status.FAILED]) == [2]
    assert paging.positions(store, "d", queries[Status.SKIPPED]) == []
    assert paging.positions(store, "d", QueueQuery(reviewer="nobody")) == [0, 1, 2, 3]


def test_records_are_read_by_place_with_all_annotations(
    store: Store, record: Callable[..., Record], said: Callable[..., Annotation]
) -> None:
    records = [record("a", said("x", (0, 3)), said("y")), record("b"), record("c", said("x"))]
    store.import_records("d", records)
    assert store.records_at("d", [2, 0, 2]) == [records[0], records[2]]
    assert store.records_at("d", [-1, 3]) == []
    assert store.records_at("d", []) == []


def test_many_places_are_read_at_once(store: Store, record: Callable[..., Record]) -> None:
    store.import_records("d", [record(f"i{n}") for n in range(450)])
    odd = store.records_at("d", range(1, 450, 2))
    assert [each.item.id for each in odd] == [f"i{n}" for n in range(1, 450, 2)]


def test_items_are_found_by_id(store: Store, record: Callable[..., Record]) -> None:
    store.import_records("d", [record("a"), record("b"), record("c")])
    assert store.positions_of("d", ["c", "a"]) == [2, 0]
    with pytest.raises(NotFoundError, match="no item 'z'"):
        store.positions_of("d", ["a", "z"])


def test_a_reader_of_one_snapshot_finds_each_item_of_each_dataset_as_each_may_see_it(
    store: Store, record: Callable[..., Record]
) -> None:
    """Where an item is, is looked up once in a snapshot."""
    store.import_records("d", [record("a"), record("b")])
    store.import_records("e", [record("b"), record("a")])
    unlisted = store.seen_with("d", Sight("Ada", listed=True))  # of whom there is no list
    with store.database.snapshot():
        for dataset in ("d", "e"):
            for item in ("a", "b"):
                assert store.record(dataset, item).item.id == item
        with pytest.raises(NotFoundError, match="no item 'a'"):
            unlisted.record("d", "a")
        assert store.record("d", "a").item.id == "a"

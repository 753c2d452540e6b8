"""Writing annotations of items that are there, with all that follows from them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, select

from spanlab.errors import InputError, NotFoundError, StoreError
from spanlab.schema import Annotation, Item, Kind, Status
from spanlab.storage import catalog, facets
from spanlab.storage.annotators import Tally, add_labels, labels_of, register
from spanlab.storage.catalog import Annotator, Dataset
from spanlab.storage.engine import Database
from spanlab.storage.items import to_json
from spanlab.storage.sql import insert_or_replace
from spanlab.storage.tables import annotated, annotators, items, reviews

_T = TypeVar("_T")
_BATCH = 200  # annotations per transaction …
_SECONDS = 1.0  # … unless they come slowly: then what there is after this time


@dataclass(frozen=True)
class Entry:
    """What ``annotator`` now says of the item at ``position``."""

    position: int
    annotator: Annotator
    annotation: Annotation


@dataclass(frozen=True)
class _Row:
    """The stored annotation of an item by one annotator."""

    annotator: int
    kind: Kind
    place: int
    status: Status
    json: str

    @property
    def decides(self) -> bool:
        """Whether it can agree or disagree with others."""
        return facets.decides(self.kind, self.status)

    def annotation(self) -> Annotation:
        """Return the annotation itself."""
        return Annotation.model_validate_json(self.json)


def save(database: Database, name: str, pairs: Iterable[tuple[str, Annotation]]) -> int:
    """Insert or replace annotations by item id, batch after batch as they come.

    Each batch is durable before the next is asked for, so that a detector that breaks off loses
    at most its last second of work.

    Args:
        database: where.
        name: the dataset.
        pairs: item ids with their annotations, in any order.

    Returns:
        The number of annotations written, 0 for no pairs.

    Raises:
        NotFoundError: no such dataset or item.
        InputError: an annotation quotes what its item does not have there.
        StoreError: it would overwrite a person's reviewed annotation, or its annotator is of
            another kind here. Earlier batches stay written.
    """
    with database.reading() as connection:
        catalog.find(connection, name)
    written = 0
    for batch in batches(pairs):
        with database.writing() as connection:
            dataset = catalog.find(connection, name)
            put(connection, dataset, entries(connection, dataset, batch))
        written += len(batch)
    return written


def put(connection: Connection, dataset: Dataset, entries: Sequence[Entry]) -> None:
    """Write ``entries`` with counts, labels and facets; the items' rows must be locked."""
    there = _stored(connection, dataset.id, [entry.position for entry in entries])
    tally, changes, used = Tally(), facets.Changes(), dict[str, None]()
    rows = []
    for entry in entries:
        annotation, annotator = entry.annotation, entry.annotator
        others = there[entry.position]
        before = others.get(annotator.id)
        place = before.place if before else 1 + max((o.place for o in others.values()), default=-1)
        text = to_json(annotation)
        rows.append(
            {
                "dataset_id": dataset.id,
                "position": entry.position,
                "annotator_id": annotator.id,
                "place": place,
                "status": annotation.status.value,
                "json": text,
            }
        )
        now = _Row(annotator.id, annotation.kind, place, annotation.status, text)
        others[annotator.id] = now
        tally.move(annotator.id, before.status if before else None, annotation.status)
        used |= dict.fromkeys(sorted(labels_of(annotation)))
        _describe(changes, entry, before, others)
    if rows:
        connection.execute(insert_or_replace(connection, annotated), rows)
    tally.write(connection, dataset.id)
    add_labels(connection, dataset.id, used)
    changes.write(connection, dataset.id)


def _describe(
    changes: facets.Changes, entry: Entry, before: _Row | None, others: dict[int, _Row]
) -> None:
    position, annotation, number = entry.position, entry.annotation, entry.annotator.id
    changes.say(position, number, annotation)
    if facets.decides(annotation.kind, annotation.status) or (before and before.decides):
        changes.judge(
            position,
            [
                annotation if row.annotator == number else row.annotation()
                for row in others.values()
                if row.decides
            ],
        )


def _stored(
    connection: Connection, dataset: int, positions: Sequence[int]
) -> dict[int, dict[int, _Row]]:
    found: dict[int, dict[int, _Row]] = defaultdict(dict)
    rows = connection.execute(
        select(annotated, annotators.c.kind)
        .join(annotators)
        .where(annotated.c.dataset_id == dataset, annotated.c.position.in_(positions))
    )
    for row in rows:
        found[row.position][row.annotator_id] = _Row(
            row.annotator_id, Kind(row.kind), row.place, Status(row.status), row.json
        )
    return found


def entries(
    connection: Connection, dataset: Dataset, batch: Sequence[tuple[str, Annotation]]
) -> list[Entry]:
    """Lock the items that a batch names and check that what is said of them may be written.

    Raises:
        NotFoundError: an item is not there.
        InputError: an annotation quotes what its item does not have there.
        StoreError: a person has reviewed it, or the annotator is of another kind here.
    """
    names = {annotation.annotator: annotation.kind for _, annotation in batch}
    who = {name: register(connection, dataset, name, kind) for name, kind in names.items()}
    rows = connection.execute(
        select(items.c.item_id, items.c.position, items.c.json)
        .where(
            items.c.dataset_id == dataset.id,
            items.c.item_id.in_({item_id for item_id, _ in batch}),
            items.c.position < dataset.n_items,
        )
        .order_by(items.c.position)
        .with_for_update(key_share=True)
    ).all()
    found = {row.item_id: row for row in rows}
    reviewed = _reviewed(connection, dataset.id, [row.position for row in rows])
    now: dict[tuple[int, int], Entry] = {}
    for item_id, annotation in batch:
        if item_id not in found:
            raise NotFoundError(f"the dataset {dataset.name!r} has no item {item_id!r}")
        position, annotator = found[item_id].position, who[annotation.annotator]
        if annotation.kind is not annotator.kind:
            register(connection, dataset, annotation.annotator, annotation.kind)
        if (position, annotator.id) in reviewed:
            raise StoreError(
                f"{annotation.annotator!r} has reviewed item {item_id!r} of {dataset.name!r}: "
                "what a person did is not overwritten"
            )
        _check(annotation, Item.model_validate_json(found[item_id].json))
        now[position, annotator.id] = Entry(position, annotator, annotation)
    return list(now.values())


def _check(annotation: Annotation, item: Item) -> None:
    try:
        annotation.check(item)
    except ValueError as error:
        raise InputError(
            f"the annotation of item {item.id!r} by {annotation.annotator!r} does not fit: {error}"
        ) from error


def _reviewed(
    connection: Connection, dataset: int, positions: Sequence[int]
) -> set[tuple[int, int]]:
    rows = connection.execute(
        select(reviews.c.position, reviews.c.annotator_id).where(
            reviews.c.dataset_id == dataset, reviews.c.position.in_(positions)
        )
    )
    return {(position, annotator) for position, annotator in rows}


def batches(things: Iterable[_T]) -> Iterator[list[_T]]:
    """Yield ``things`` by so many as one transaction takes, or what came within its time."""
    batch: list[_T] = []
    began = time.monotonic()
    for thing in things:
        batch.append(thing)
        if len(batch) >= _BATCH or time.monotonic() - began >= _SECONDS:
            yield batch
            batch, began = [], time.monotonic()
    if batch:
        yield batch

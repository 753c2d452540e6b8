"""Writing annotations: rows with the values of queues, counts, labels, the passages they quote."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, bindparam, select, update

from spanlab.errors import InputError, StoreError
from spanlab.schema import Annotation, Item, merged, renumbered
from spanlab.storage import catalog, search
from spanlab.storage.catalog import AnnotatorRow, DatasetRow, StatusTally, register
from spanlab.storage.engine import Database, insert_new, insert_or_replace
from spanlab.storage.items import locked, to_json
from spanlab.storage.queue_values import (
    AnnotationValues,
    StoredAnnotation,
    annotation_values,
    stored_at,
    update_values,
)
from spanlab.storage.tables import annotated, items, labels, queue_values, reviews

Pairs = Sequence[tuple[str, Annotation]]  # item ids with their annotations
_T = TypeVar("_T")
_BATCH = 200  # annotations per transaction …
_SECONDS = 1.0  # … unless they come slowly: then what there is after this time


@dataclass(frozen=True)
class AnnotationRow:
    """The annotation that replaces what ``annotator`` had stored for the item at ``position``."""

    position: int
    annotator: AnnotatorRow
    annotation: Annotation


def save_annotations(
    database: Database, name: str, pairs: Iterable[tuple[str, Annotation]], *, whole: bool = False
) -> int:
    """Insert or replace annotations by item id, in any order, and return how many were written.

    Each batch is durable before the next is asked for, so that a detector that breaks off loses
    at most its last second of work. With ``whole`` all are written or none, and whoever else
    writes waits.

    Raises:
        NotFoundError: no such dataset or item.
        InputError: an annotation quotes what its item does not have there.
        StoreError: it would overwrite a person's reviewed annotation, or its annotator is of
            another kind here. Earlier batches stay written.
    """
    if not whole:
        return save_batches(database, name, pairs, _entries)
    written = 0
    with database.writing() as connection:
        dataset = catalog.find(connection, name)
        for batch in _batches(pairs):
            put(connection, dataset, _entries(connection, dataset, batch))
            written += len(batch)
    return written


def save_batches(
    database: Database,
    name: str,
    things: Iterable[_T],
    entries_of: Callable[[Connection, DatasetRow, Sequence[_T]], Sequence[AnnotationRow]],
) -> int:
    """Write the rows that ``entries_of`` makes of each batch; raises as ``save_annotations`` does.

    It locks the items whose annotations these are.

    Returns:
        The number of ``things`` written, 0 for none.
    """
    with database.reading() as connection:
        catalog.find(connection, name)
    written = 0
    for batch in _batches(things):
        with database.writing() as connection:
            dataset = catalog.find(connection, name)
            put(connection, dataset, entries_of(connection, dataset, batch))
        written += len(batch)
    return written


def put(connection: Connection, dataset: DatasetRow, entries: Sequence[AnnotationRow]) -> None:
    """Write ``entries`` with counts, labels and values; the items' rows must be locked."""
    there = stored_at(connection, dataset.id, [entry.position for entry in entries])
    tally, used = StatusTally(), dict[str, None]()
    rows, found_by = [], []
    disputed: set[int] = set()
    for entry in entries:
        position, annotation, annotator = entry.position, entry.annotation, entry.annotator
        others = there[position]
        before = others.get(annotator.id)
        place = before.place if before else 1 + max((o.place for o in others.values()), default=-1)
        values = annotation_values(annotation)
        row = annotation_row(dataset.id, position, annotator.id, place, annotation, values)
        rows.append(row)
        others[annotator.id] = StoredAnnotation(place, values, row["json"])
        tally.move(annotator.id, before.values.status if before else None, annotation.status)
        used |= dict.fromkeys(labels_of(annotation))
        search_entry = search.of_annotation(position, annotator.id, annotation)
        if search_entry.terms or (before and search.may_find(before.json)):
            found_by.append(search_entry)
        if values.decides or (before and before.values.decides):
            disputed.add(position)
    if rows:
        connection.execute(insert_or_replace(connection, annotated), rows)
    add_labels(connection, dataset.id, used)
    update_values(connection, dataset.id, there, disputed)
    search.put(connection, dataset.id, found_by)
    # Last, as all who write for this annotator wait for these rows until the transaction ends.
    tally.write(connection, dataset.id)


def annotation_row(
    dataset: int,
    position: int,
    annotator: int,
    place: int,
    annotation: Annotation,
    values: AnnotationValues,
) -> dict[str, Any]:
    """Return the row of the table ``annotated`` that holds ``annotation``."""
    return {
        "dataset_id": dataset,
        "position": position,
        "annotator_id": annotator,
        "place": place,
        **values.columns(),
        "json": to_json(annotation),
    }


def _entries(connection: Connection, dataset: DatasetRow, batch: Pairs) -> list[AnnotationRow]:
    """Lock the items that a batch names and check that the annotations may be written."""
    names = {annotation.annotator: annotation.kind for _, annotation in batch}
    who = {name: register(connection, dataset, name, kind) for name, kind in names.items()}
    return checked_rows(connection, dataset, batch, locked(connection, dataset, dict(batch)), who)


def checked_rows(
    connection: Connection,
    dataset: DatasetRow,
    batch: Pairs,
    stored: Mapping[str, tuple[int, Item]],
    who: Mapping[str, AnnotatorRow],
) -> list[AnnotationRow]:
    """Return the rows of annotations, checked that they may be written.

    Args:
        connection: in a transaction that may write.
        dataset: where they belong.
        batch: the annotations by item id; of several by one annotator of an item the last counts.
        stored: each item's position and content by id, locked.
        who: the annotators by name.

    Raises:
        InputError: an annotation quotes what its item does not have there.
        StoreError: it would overwrite a person's reviewed annotation, or its annotator is of
            another kind here.
    """
    reviewed = _reviewed(connection, dataset.id, [position for position, _ in stored.values()])
    now: dict[tuple[int, int], AnnotationRow] = {}
    for item_id, annotation in batch:
        (position, item), annotator = stored[item_id], who[annotation.annotator]
        if annotation.kind is not annotator.kind:
            register(connection, dataset, annotation.annotator, annotation.kind)
        if (position, annotator.id) in reviewed:
            raise StoreError(
                f"{annotation.annotator!r} has reviewed item {item_id!r} of {dataset.name!r}: "
                "what a person did is not overwritten"
            )
        with fitting(annotation, item_id):
            annotation.check(item)
        now[position, annotator.id] = AnnotationRow(position, annotator, annotation)
    return list(now.values())


@contextmanager
def fitting(annotation: Annotation, item_id: str) -> Iterator[None]:
    """Turn a ValueError of the block into an InputError that names the item and annotator."""
    try:
        yield
    except ValueError as error:
        raise InputError(
            f"the annotation of item {item_id!r} by {annotation.annotator!r} does not fit: {error}"
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


def _batches(things: Iterable[_T]) -> Iterator[list[_T]]:
    """Yield ``things`` in batches of one transaction: full ones, or what came within its time."""
    batch: list[_T] = []
    began = time.monotonic()
    for thing in things:
        batch.append(thing)
        if len(batch) >= _BATCH or time.monotonic() - began >= _SECONDS:
            yield batch
            batch, began = [], time.monotonic()
    if batch:
        yield batch


class FoundAnnotations(Protocol):
    """Annotations of an item, with the passages that their evidence points to."""

    @property
    def item(self) -> Item:
        """The item with all passages that the detector saw."""
        ...

    @property
    def annotations(self) -> Sequence[Annotation]:
        """Annotations of this item."""
        ...


def save_findings(database: Database, name: str, findings: Iterable[FoundAnnotations]) -> int:
    """Write findings in any order, batch after batch, and return how many.

    Passages and retrievals that the stored item lacks are appended to it. Its own passages keep
    their numbers, so that the evidence of others stays right; the evidence of the new annotations
    is renumbered where the stored item has other passages than the detector saw.

    Raises:
        NotFoundError: no such dataset or item.
        InputError: an annotation quotes what its item does not have there, or the item was replaced
            by one with another answer.
        StoreError: it would overwrite a person's reviewed annotation, or its annotator is of
            another kind here. Earlier batches stay written.
    """
    return save_batches(database, name, findings, _grow)


def _grow(
    connection: Connection, dataset: DatasetRow, batch: Sequence[FoundAnnotations]
) -> list[AnnotationRow]:
    """Append to the stored items what is new, and return the annotations as they fit there."""
    # Annotators before items: all writers lock in this order, so that none wait for each other.
    kinds = {
        annotation.annotator: annotation.kind
        for finding in batch
        for annotation in finding.annotations
    }
    who = {name: register(connection, dataset, name, kind) for name, kind in kinds.items()}
    stored = locked(connection, dataset, dict.fromkeys(finding.item.id for finding in batch))
    grown: dict[str, Item] = {}
    pairs: list[tuple[str, Annotation]] = []
    for finding in batch:
        item_id = finding.item.id
        position, before = stored[item_id]
        if before.answer != finding.item.answer:
            raise InputError(
                f"item {item_id!r} has another answer now than the one that was judged"
            )
        now, moved = merged(before, finding.item)
        if now is not before:
            stored[item_id], grown[item_id] = (position, now), now
        for annotation in finding.annotations:
            with fitting(annotation, item_id):
                pairs.append((item_id, renumbered(annotation, moved)))
    if grown:
        rows = [
            {"at": stored[item_id][0], "text": to_json(item), "n": len(item.passages)}
            for item_id, item in grown.items()
        ]
        for table, column, value in ((items, "json", "text"), (queue_values, "n_passages", "n")):
            here = (table.c.dataset_id == dataset.id, table.c.position == bindparam("at"))
            connection.execute(update(table).where(*here).values({column: bindparam(value)}), rows)
    return checked_rows(connection, dataset, pairs, stored, who)


def labels_of(annotation: Annotation) -> list[str]:
    """Return the labels of an annotation's spans, each once, in alphabetical order."""
    return sorted({span.label for span in annotation.spans if span.label is not None})


def add_labels(connection: Connection, dataset: int, names: Iterable[str]) -> None:
    """Enter those of ``names`` that spans of ``dataset`` have not used before."""
    if not (names := tuple(names)):
        return
    used = labels.c.dataset_id == dataset
    entered = set(connection.execute(select(labels.c.label).where(used)).scalars())
    rows = [
        {"dataset_id": dataset, "label": name, "place": len(entered) + more}
        for more, name in enumerate(name for name in dict.fromkeys(names) if name not in entered)
    ]
    if rows:
        connection.execute(insert_new(connection, labels), rows)

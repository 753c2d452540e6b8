"""Writing annotations: rows with the values of queues, counts, labels, the passages they quote.

The numbers that queues filter and order by are worked out from items and annotations here, and kept
in columns of the tables ``annotations`` and ``queue_values`` (see tables.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection, bindparam, select, update

from spanlab.base.errors import InputError, StoreError
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Item,
    Status,
    is_same_case,
    merged,
    renumbered,
)
from spanlab.storage import catalog, search
from spanlab.storage.catalog import AnnotatorRow, DatasetRow, StatusTally, register
from spanlab.storage.engine import Database, insert_new, insert_or_replace
from spanlab.storage.items import lock_items, to_json
from spanlab.storage.tables import annotated, annotators, items, labels, queue_values, reviews
from spanlab.text.labels import disagreement, people_agree

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
        return save_batches(database, name, pairs, _check_batch)
    n_written = 0
    with database.writing() as connection:
        dataset = catalog.find(connection, name)
        for batch in _batches(pairs):
            put(connection, dataset, _check_batch(connection, dataset, batch))
            n_written += len(batch)
    return n_written


def save_batches(
    database: Database,
    name: str,
    results: Iterable[_T],
    entries_of: Callable[[Connection, DatasetRow, Sequence[_T]], Sequence[AnnotationRow]],
) -> int:
    """Write the rows that ``entries_of`` makes of each batch; raises as ``save_annotations`` does.

    It locks the items whose annotations these are.

    Returns:
        The number of ``results`` written, 0 for none.
    """
    with database.reading() as connection:
        catalog.find(connection, name)
    n_written = 0
    for batch in _batches(results):
        with database.writing() as connection:
            dataset = catalog.find(connection, name)
            put(connection, dataset, entries_of(connection, dataset, batch))
        n_written += len(batch)
    return n_written


def put(connection: Connection, dataset: DatasetRow, entries: Sequence[AnnotationRow]) -> None:
    """Write ``entries`` with counts, labels and values; the items' rows must be locked."""
    stored = stored_at(connection, dataset.id, [entry.position for entry in entries])
    tally, used = StatusTally(), dict[str, None]()
    rows, found_by = [], []
    disputed: set[int] = set()
    for entry in entries:
        position, annotation, annotator = entry.position, entry.annotation, entry.annotator
        by_annotator = stored[position]
        previous = by_annotator.get(annotator.id)
        places = (annotation.place for annotation in by_annotator.values())
        place = previous.place if previous else 1 + max(places, default=-1)
        values = annotation_values(annotation)
        row = annotation_row(dataset.id, entry, place, values)
        rows.append(row)
        by_annotator[annotator.id] = StoredAnnotation(place, values, row["json"])
        tally.move(annotator.id, previous.values.status if previous else None, annotation.status)
        used |= dict.fromkeys(labels_of(annotation))
        search_entry = search.entry_of_annotation(position, annotator.id, annotation)
        if search_entry.terms or (previous and search.may_find(previous.json)):
            found_by.append(search_entry)
        if values.decides or (previous and previous.values.decides):
            disputed.add(position)
    if rows:
        connection.execute(insert_or_replace(connection, annotated), rows)
    add_labels(connection, dataset.id, used)
    update_values(connection, dataset.id, stored, disputed)
    search.put(connection, dataset.id, found_by)
    # Last, as all who write for this annotator wait for these rows until the transaction ends.
    tally.write(connection, dataset.id)


def annotation_row(
    dataset: int, entry: AnnotationRow, place: int, values: AnnotationValues
) -> dict[str, Any]:
    """Return the columns of the table ``annotated`` for an annotation of the item."""
    return {
        "dataset_id": dataset,
        "position": entry.position,
        "annotator_id": entry.annotator.id,
        "place": place,
        **values.columns(),
        "json": to_json(entry.annotation),
    }


def _check_batch(connection: Connection, dataset: DatasetRow, batch: Pairs) -> list[AnnotationRow]:
    """Lock the items that a batch names and check that the annotations may be written."""
    names = {annotation.annotator: annotation.kind for _, annotation in batch}
    annotators = {name: register(connection, dataset, name, kind) for name, kind in names.items()}
    stored = lock_items(connection, dataset, dict(batch))
    return check_rows(connection, dataset, batch, stored=stored, annotators=annotators)


def check_rows(
    connection: Connection,
    dataset: DatasetRow,
    batch: Pairs,
    *,
    stored: Mapping[str, tuple[int, Item]],
    annotators: Mapping[str, AnnotatorRow],
) -> list[AnnotationRow]:
    """Check that annotations may be written, and return their rows.

    Args:
        connection: in a transaction that may write.
        dataset: where they belong.
        batch: the annotations by item id; of several by one annotator of an item the last counts.
        stored: each item's position and content by id, locked.
        annotators: the annotators by name.

    Raises:
        InputError: an annotation quotes what its item does not have there.
        StoreError: it would overwrite a person's reviewed annotation, or its annotator is of
            another kind here.
    """
    reviewed = _find_reviewed(connection, dataset.id, [position for position, _ in stored.values()])
    rows: dict[tuple[int, int], AnnotationRow] = {}
    for item_id, annotation in batch:
        (position, item), annotator = stored[item_id], annotators[annotation.annotator]
        if annotation.kind is not annotator.kind:
            register(connection, dataset, annotation.annotator, annotation.kind)
        if (position, annotator.id) in reviewed:
            raise StoreError(
                f"{annotation.annotator!r} has reviewed item {item_id!r} of {dataset.name!r}: "
                "what a person did is not overwritten"
            )
        with naming_annotation(annotation, item_id):
            annotation.check(item)
        rows[position, annotator.id] = AnnotationRow(position, annotator, annotation)
    return list(rows.values())


@contextmanager
def naming_annotation(annotation: Annotation, item_id: str) -> Iterator[None]:
    """Turn a ValueError of the block into an InputError that names the item and annotator."""
    try:
        yield
    except ValueError as error:
        raise InputError(
            f"the annotation of item {item_id!r} by {annotation.annotator!r} does not fit: {error}"
        ) from error


def _find_reviewed(
    connection: Connection, dataset: int, positions: Sequence[int]
) -> set[tuple[int, int]]:
    rows = connection.execute(
        select(reviews.c.position, reviews.c.annotator_id).where(
            reviews.c.dataset_id == dataset, reviews.c.position.in_(positions)
        )
    )
    return {(position, annotator) for position, annotator in rows}


def _batches(results: Iterable[_T]) -> Iterator[list[_T]]:
    """Yield ``results`` in batches of one transaction: full ones, or what came within its time."""
    batch: list[_T] = []
    began = time.monotonic()
    for result in results:
        batch.append(result)
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
            by one with another answer, question or process.
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
    annotators = {name: register(connection, dataset, name, kind) for name, kind in kinds.items()}
    stored = lock_items(connection, dataset, dict.fromkeys(finding.item.id for finding in batch))
    grown: dict[str, Item] = {}
    pairs: list[tuple[str, Annotation]] = []
    for finding in batch:
        item_id = finding.item.id
        position, stored_item = stored[item_id]
        if not is_same_case(stored_item, finding.item):
            raise InputError(
                f"item {item_id!r} has another answer, question or process now than the one that "
                "was judged"
            )
        item, moved = merged(stored_item, finding.item)
        if item is not stored_item:
            stored[item_id], grown[item_id] = (position, item), item
        for annotation in finding.annotations:
            with naming_annotation(annotation, item_id):
                pairs.append((item_id, renumbered(annotation, moved)))
    if grown:
        rows = [
            {"at": stored[item_id][0], "text": to_json(item), "n": len(item.passages)}
            for item_id, item in grown.items()
        ]
        for table, column, value in ((items, "json", "text"), (queue_values, "n_passages", "n")):
            is_row = (table.c.dataset_id == dataset.id, table.c.position == bindparam("at"))
            updating = update(table).where(*is_row).values({column: bindparam(value)})
            connection.execute(updating, rows)
    return check_rows(connection, dataset, pairs, stored=stored, annotators=annotators)


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
        {"dataset_id": dataset, "label": name, "place": place}
        for place, name in enumerate(
            (name for name in dict.fromkeys(names) if name not in entered), len(entered)
        )
    ]
    if rows:
        connection.execute(insert_new(connection, labels), rows)


Values = dict[str, Any]  # by the name of the column


class AnnotationValues(NamedTuple):
    """The numbers of an annotation.

    ``prob`` is its highest span probability; without spans how likely the answer is hallucinated,
    and None where it is not finished;
    ``n_labels`` counts the different labels of its spans.
    """

    kind: AnnotatorKind
    status: Status
    prob: float | None
    n_labels: int
    n_claims: int

    @property
    def decides(self) -> bool:
        """Whether it can agree or disagree with others."""
        # Not "in" a set: it would hash enums, which takes longer than all the rest.
        return self.status is Status.DONE and (
            self.kind is AnnotatorKind.PERSON or self.kind is AnnotatorKind.DETECTOR
        )

    def columns(self) -> Values:
        """Return what stands beside the JSON of the annotation."""
        return {
            "status": self.status.value,
            "prob": self.prob,
            "n_labels": self.n_labels,
            "n_claims": self.n_claims,
        }


def annotation_values(annotation: Annotation) -> AnnotationValues:
    """Return the numbers of one annotation."""
    spans, status = annotation.spans, annotation.status
    highest = None
    if status is Status.DONE:
        highest = max([s.prob for s in spans]) if spans else annotation.hallucination_prob
    n_labels = len({span.label for span in spans} - {None}) if spans else 0
    return AnnotationValues(
        annotation.kind, status, prob=highest, n_labels=n_labels, n_claims=len(annotation.claims)
    )


def position_values(
    item: Item, annotations: Sequence[Annotation], numbers: Sequence[AnnotationValues]
) -> Values:
    """Return the row of an item in ``queue_values``, but for its place, from all annotations."""
    return {
        "lang": item.lang,
        "n_passages": len(item.passages),
        **counted_values(numbers),
        **disputed_values(
            [
                annotation
                for annotation, own in zip(annotations, numbers, strict=True)
                if own.decides
            ]
        ),
    }


def counted_values(numbers: Iterable[AnnotationValues]) -> Values:
    """Return the columns of an item that follow from the numbers of all its annotations.

    ``n_people`` counts the persons who have finished it, ``max_prob`` is the highest of finished
    detectors, None without one. Labels and claims are the most of any annotator; of any detector
    for those who review blind.
    """
    n_people, max_prob = 0, None
    n_labels = n_claims = detector_labels = detector_claims = 0
    for kind, status, prob, own_labels, own_claims in numbers:
        n_labels, n_claims = max(n_labels, own_labels), max(n_claims, own_claims)
        if kind is AnnotatorKind.DETECTOR:
            detector_labels = max(detector_labels, own_labels)
            detector_claims = max(detector_claims, own_claims)
            if prob is not None:
                max_prob = prob if max_prob is None else max(max_prob, prob)
        elif kind is AnnotatorKind.PERSON and status is Status.DONE:
            n_people += 1
    return {
        "n_people": n_people,
        "max_prob": max_prob,
        "n_labels": n_labels,
        "n_claims": n_claims,
        "detector_labels": detector_labels,
        "detector_claims": detector_claims,
    }


def disputed_values(deciding: Sequence[Annotation]) -> Values:
    """Return how much those who decided disagree, and detectors alone; None for less than two.

    ``unanimous`` is 1 where all people agree, 0 elsewhere.
    """
    detectors = [annotation for annotation in deciding if annotation.kind is AnnotatorKind.DETECTOR]
    score = disagreement(deciding) if len(deciding) > 1 else None
    alone = score
    if len(detectors) < len(deciding):
        alone = disagreement(detectors) if len(detectors) > 1 else None
    unanimous = int(people_agree(deciding))
    return {"disagreement": score, "detector_disagreement": alone, "unanimous": unanimous}


@dataclass(frozen=True)
class StoredAnnotation:
    """The stored annotation of an item by one annotator."""

    place: int
    values: AnnotationValues
    json: str

    def annotation(self) -> Annotation:
        """Return the annotation itself."""
        return Annotation.model_validate_json(self.json)


def update_values(
    connection: Connection,
    dataset: int,
    annotations: Mapping[int, Mapping[int, StoredAnnotation]],
    disputed: Collection[int],
) -> None:
    """Write the values of items anew that follow from all their annotations.

    Args:
        connection: in a transaction that may write; the items' rows must be locked.
        dataset: its number.
        annotations: the items' annotations by position and annotator.
        disputed: the positions where the disagreement may have changed: they take longer.
    """
    counted, decided = [], []
    for position, by_annotator in annotations.items():
        at = {"at": position}
        counted.append(at | counted_values(stored.values for stored in by_annotator.values()))
        if position in disputed:
            deciding = [
                stored.annotation() for stored in by_annotator.values() if stored.values.decides
            ]
            decided.append(at | disputed_values(deciding))
    updating = update(queue_values).where(
        queue_values.c.dataset_id == dataset, queue_values.c.position == bindparam("at")
    )
    for rows in (counted, decided):
        if rows:
            connection.execute(
                updating.values({name: bindparam(name) for name in rows[0].keys() - {"at"}}), rows
            )


def stored_at(
    connection: Connection, dataset: int, positions: Sequence[int]
) -> dict[int, dict[int, StoredAnnotation]]:
    """Return the stored annotations at ``positions`` by position and annotator."""
    by_position: dict[int, dict[int, StoredAnnotation]] = {position: {} for position in positions}
    rows = connection.execute(
        select(annotated, annotators.c.kind)
        .join(annotators)
        .where(annotated.c.dataset_id == dataset, annotated.c.position.in_(by_position))
    )
    for row in rows:
        kind, status = AnnotatorKind(row.kind), Status(row.status)
        values = AnnotationValues(
            kind, status, prob=row.prob, n_labels=row.n_labels, n_claims=row.n_claims
        )
        by_position[row.position][row.annotator_id] = StoredAnnotation(row.place, values, row.json)
    return by_position

"""Imports: many records into a dataset, in batches that readers do not see before the last."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlalchemy import select

from spanlab.errors import InputError
from spanlab.schema import Annotation, AnnotatorKind, Record
from spanlab.storage import catalog, search
from spanlab.storage.annotations import (
    AnnotationValues,
    annotation_row,
    annotation_values,
    position_values,
)
from spanlab.storage.catalog import DatasetRow, StatusTally, add_labels, labels_of, register
from spanlab.storage.engine import Database, insert_rows
from spanlab.storage.items import ProcessWriter, to_json
from spanlab.storage.staging import publish, stage
from spanlab.storage.tables import annotated, items, queue_values

OnTaken = Callable[[int, Record], None]

_ITEMS = 1024  # per transaction: a reviewer's write waits for one at most …
_CHARACTERS = 8_000_000  # … and fewer if they are long


def import_records(
    database: Database,
    name: str,
    records: Iterable[Record],
    on_progress: Callable[[int], None] | None = None,
    on_taken: OnTaken | None = None,
) -> int:
    """Append ``records`` to the dataset ``name``, which is made if it is not there.

    All or nothing: an error, or the death of the process, leaves the dataset as it was. Others
    can read and review meanwhile.

    Args:
        database: the database.
        name: the dataset.
        records: in the order that the dataset keeps; read as a stream.
        on_progress: called now and then with the number of records so far.
        on_taken: called with the 0-based number of each record whose id stands before it in the
            import or in the dataset, and the record; if it returns, the record is left out. None
            raises.

    Returns:
        The number of records stored, 0 if there were none (the dataset is there then, and empty).

    Raises:
        InputError: an id is repeated (without ``on_taken``), or a text cannot be stored.
        StoreError: another import into this dataset is under way, or an annotator has another
            kind here.
        UsageError: ``name`` cannot name a dataset.
    """
    with stage(database, name, create=False) as staged:
        load = _RunningImport(database, staged)
        for chunk in _chunks(records):
            for record in load.new(chunk, on_taken or _refuse):
                load.add(record)
                if load.is_full:
                    load.write()
            load.write()
            if on_progress is not None:
                on_progress(load.n_records)
        load.finish()
        if on_progress is not None:
            on_progress(load.n_records)
        return load.n_records


class _ImportBatch:
    """The rows of one transaction."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)  # by table
        self.found_by: list[search.SearchEntry] = []
        self.characters = 0


class _RunningImport:
    """An import under way: the current batch, and the counts that are written at the end."""

    def __init__(self, database: Database, dataset: DatasetRow) -> None:
        self._database = database
        self._dataset = dataset
        self._stop = dataset.n_items  # behind the last record
        self._n_drawn = 0
        self._batch = _ImportBatch()
        self._annotators: dict[tuple[str, AnnotatorKind], int] = {}
        self._tally = StatusTally()
        self._labels: dict[str, None] = {}
        self._languages: Counter[str] = Counter()
        self._processes = ProcessWriter(database, dataset)

    @property
    def n_records(self) -> int:
        """How many records have come so far."""
        return self._stop - self._dataset.n_items

    @property
    def is_full(self) -> bool:
        """Whether the current batch should be written: it is large."""
        return len(self._batch.rows[items.name]) >= _ITEMS or self._batch.characters >= _CHARACTERS

    def new(self, chunk: list[Record], on_taken: OnTaken) -> Iterator[Record]:
        """Yield the records whose ids are new; what was yielded before must be written by now."""
        known = items.c.item_id.in_([record.item.id for record in chunk])
        query = select(items.c.item_id).where(items.c.dataset_id == self._dataset.id, known)
        with self._database.reading() as connection:
            taken = set(connection.execute(query).scalars())
        for record in chunk:
            if record.item.id in taken:
                on_taken(self._n_drawn, record)
            else:
                taken.add(record.item.id)
                yield record
            self._n_drawn += 1

    def add(self, record: Record) -> None:
        """Take ``record`` into the batch."""
        try:
            self._add(record)
        except InputError as error:
            error.what = f"item {record.item.id!r} {error.what}"
            raise
        self._stop += 1

    def write(self) -> None:
        """Write the batch in one transaction, above what readers see."""
        if not self._batch.rows:
            return
        with self._database.writing() as connection:
            for table in (items, annotated, queue_values):
                insert_rows(connection, table.name, self._batch.rows[table.name])
            search.add(connection, self._dataset.id, self._batch.found_by)
        self._batch = _ImportBatch()

    def finish(self) -> None:
        """Show everything that was written."""
        with self._database.writing() as connection:
            catalog.add_languages(connection, self._dataset, self._languages)
            add_labels(connection, self._dataset.id, self._labels)
            self._tally.write(connection, self._dataset.id)
            publish(connection, self._dataset.id, self._stop)

    def _add(self, record: Record) -> None:
        batch, dataset, position = self._batch, self._dataset.id, self._stop
        item = self._processes.take(record.item, position)
        self._languages[item.lang] += 1
        text = to_json(item)
        batch.rows[items.name].append(
            {"dataset_id": dataset, "position": position, "item_id": item.id, "json": text}
        )
        batch.found_by.append(search.of_item(position, item))
        batch.characters += len(text)
        numbers: list[AnnotationValues] = []
        for place, annotation in enumerate(record.annotations):
            number = self._number(annotation)
            values = annotation_values(annotation)
            row = annotation_row(dataset, position, number, place, annotation, values)
            batch.rows[annotated.name].append(row)
            numbers.append(values)
            if search.may_find(row["json"]):
                batch.found_by.append(search.of_annotation(position, number, annotation))
            batch.characters += len(row["json"])
            self._tally.move(number, None, annotation.status)
            if values.n_labels:
                self._labels |= dict.fromkeys(labels_of(annotation))
        row = {"dataset_id": dataset, "position": position}
        batch.rows[queue_values.name].append(
            row | position_values(item, record.annotations, numbers)
        )

    def _number(self, annotation: Annotation) -> int:
        who = (annotation.annotator, annotation.kind)
        if who not in self._annotators:
            with self._database.writing() as connection:
                self._annotators[who] = register(connection, self._dataset, *who).id
        return self._annotators[who]


def _chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield the records by so many as one transaction takes."""
    chunk: list[Record] = []
    characters = 0
    for record in records:
        chunk.append(record)
        characters += len(record.item.answer) + sum(len(p.text) for p in record.item.passages)
        if len(chunk) == _ITEMS or characters >= _CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _refuse(_index: int, record: Record) -> None:
    raise InputError(
        "this id occurs twice in the import, or in the dataset already",
        field="id",
        found=record.item.id,
        expected="ids that are new to the dataset",
    )

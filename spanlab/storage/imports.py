"""Imports: many records into a dataset, in batches that readers do not see before the last."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, delete, or_, select, text, update

from spanlab.base.errors import InputError
from spanlab.formats.wrongs import repeated_id
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status
from spanlab.storage import assignment, catalog, search
from spanlab.storage.annotations import (
    AnnotationValues,
    StoredAnnotation,
    add_labels,
    annotation_values,
    labels_of,
    position_values,
    stored_at,
)
from spanlab.storage.catalog import AnnotatorRow, DatasetRow, StatusTally, register
from spanlab.storage.engine import Database, insert_rows
from spanlab.storage.items import lock_items, to_json
from spanlab.storage.moves import arriving, publish
from spanlab.storage.processes import ProcessWriter
from spanlab.storage.tables import (
    annotated,
    annotators,
    items,
    queue_values,
    reservations,
    reviews,
)

OnTaken = Callable[[int, Record], Record | None]

_ITEMS = 1024  # per transaction: a reviewer's write waits for one at most …
_CHARACTERS = 8_000_000  # … and fewer if they are long
_DRAWN = 256  # records at once: few enough to stay in the processor's cache
# A subquery for each id, and no IN: of a table that has just been filled PostgreSQL does not know
# how many rows a dataset has, and would go through all of them instead of the ids' own index.
_STORED_ID = "SELECT (SELECT item_id FROM items WHERE dataset_id = :dataset AND item_id = value) "
_STORED_IDS = {
    "sqlite": text(_STORED_ID + "FROM json_each(:ids)"),
    "postgresql": text(_STORED_ID + "FROM json_array_elements_text(CAST(:ids AS json))"),
}
_QUEUED = itemgetter(*queue_values.c.keys()[2:-1])  # between dataset, position and turn


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
            import or in the dataset, and the record; returns it under another id, and is asked
            again while that is taken, too, or None to leave it out. None raises.

    Returns:
        The number of records stored, 0 if there were none (the dataset is there then, and empty).

    Raises:
        InputError: an id is repeated (without ``on_taken``), or a text cannot be stored.
        StoreError: another import into this dataset is under way, or an annotator has another
            kind here.
        UsageError: ``name`` cannot name a dataset.
    """
    with arriving(database, name, create=False) as staged, ThreadPoolExecutor(1) as writer:
        load = _RunningImport(database, staged, writer)
        for chunk in _read_chunks(records):
            for record in load.skip_taken(chunk, on_taken or _refuse):
                load.add(record)
                if load.is_full:
                    load.write()
            if on_progress is not None:
                on_progress(load.n_records)
        load.finish()
        if on_progress is not None:
            on_progress(load.n_records)
        return load.n_records


def revise_item(connection: Connection, dataset: DatasetRow, name: str, item: Item) -> int | None:
    """Store an item in place of the one called ``name``, unless a person annotated or opened that.

    Its id may be another one that no item has. What detectors and votes said of other texts than it
    has is removed. Where it differs in id and meta alone, that stays, with the passages they found.

    Returns:
        How many annotations are removed; None if it is not stored.

    Raises:
        NotFoundError: the dataset has no item of this id.
    """
    ((position, old),) = lock_items(connection, dataset, [name]).values()
    place = {"dataset_id": dataset.id, "position": position}
    if kept_items(connection, dataset, [name]):
        return None
    said: Mapping[int, StoredAnnotation] = {}
    if _as_it_came(old, len(item.passages)) == item.model_copy(update={"id": name, "meta": {}}):
        item = old.model_copy(update={"id": item.id, "meta": item.meta})
    else:
        said = stored_at(connection, dataset.id, [position])[position]
        connection.execute(delete(annotated).filter_by(**place))
        queued = position_values(item, (), [])
        connection.execute(update(queue_values).filter_by(**place).values(**queued))
    values = {"item_id": item.id, "json": to_json(item)}
    connection.execute(update(items).filter_by(**place).values(values))
    gone = [search.SearchEntry(position, annotator, ()) for annotator in said]
    search.put(connection, dataset.id, [search.entry_of_item(position, item), *gone])
    catalog.add_languages(connection, dataset, Counter({item.lang: 1}))
    catalog.add_languages(connection, dataset, Counter({old.lang: -1}))
    tally = StatusTally()
    for annotator, stored in said.items():
        tally.add(annotator, stored.values.status, -1)
    tally.write(connection, dataset.id)  # last, as all who write for these annotators wait for it
    return len(said)


def _as_it_came(item: Item, n_passages: int) -> Item:
    """Return an item without meta, and without passages behind the first that were found for it."""
    found = {index for retrieval in item.retrievals for index in retrieval.passages}
    if not found.issuperset(range(n_passages, len(item.passages))):
        return item
    came = {"passages": item.passages[:n_passages], "retrievals": (), "meta": {}}
    return item.model_copy(update=came)


def kept_items(connection: Connection, dataset: DatasetRow, names: Collection[str]) -> list[str]:
    """Return the ids of the items among ``names`` that a person annotated or has opened."""
    machines = [kind.value for kind in (AnnotatorKind.DETECTOR, AnnotatorKind.VOTE)]
    by_people = select(annotated.c.position).join(annotators)
    by_people = by_people.where(annotators.c.kind.not_in(machines))
    found = [(annotated, by_people)]
    found += [(table, select(table.c.position)) for table in (reviews, reservations)]
    keys = ("dataset_id", "position")
    kept = or_(
        *(query.where(*(table.c[k] == items.c[k] for k in keys)).exists() for table, query in found)
    )
    named = items.c.item_id.in_(list(names))
    query = select(items.c.item_id).where(items.c.dataset_id == dataset.id, named, kept)
    return list(connection.execute(query.order_by(items.c.position)).scalars())


class _ImportBatch:
    """The rows of one transaction."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)  # by table
        self.found_by: list[search.SearchEntry] = []
        self.ids: set[str] = set()
        self.characters = 0


class _RunningImport:
    """An import under way: the current batch, and the counts that are written at the end.

    While one batch is read, the one before is written by another thread.
    """

    def __init__(self, database: Database, dataset: DatasetRow, writer: Executor) -> None:
        self._database = database
        self._writer = writer
        self._writing: Future[None] | None = None
        self._dataset = dataset
        self._stop = dataset.n_items  # behind the last record
        self._n_drawn = 0
        self._batch = self._before = _ImportBatch()
        self._annotators: dict[str, AnnotatorRow] = {}
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

    def skip_taken(self, records: list[Record], on_taken: OnTaken) -> Iterator[Record]:
        """Yield the records whose ids are new; each is to be added before the next is asked for."""
        taken = self._stored([record.item.id for record in records])
        taken |= self._before.ids | self._batch.ids  # or just being written
        for record in records:
            new: Record | None = record
            while new is not None and (
                new.item.id in taken or (new is not record and self._stored([new.item.id]))
            ):
                new = on_taken(self._n_drawn, new)
            if new is not None:
                yield new
                taken.add(new.item.id)
            self._n_drawn += 1

    def _stored(self, ids: Sequence[str]) -> set[str]:
        """Return those of ``ids`` that items have in the database."""
        with self._database.reading() as connection:
            query = _STORED_IDS[connection.dialect.name]
            parameters = {"dataset": self._dataset.id, "ids": json.dumps(ids)}
            return set(connection.execute(query, parameters).scalars()) - {None}

    def add(self, record: Record) -> None:
        """Take ``record`` into the batch."""
        try:
            self._add(record)
        except InputError as error:
            error.what = f"item {record.item.id!r} {error.what}"
            raise
        self._stop += 1

    def write(self) -> None:
        """Have the batch written in one transaction, above what readers see.

        Raises:
            StoreError: the batch before could not be written.
        """
        self._wait()
        statuses = Counter(map(itemgetter(2, 4), self._batch.rows[annotated.name]))
        for (number, status), n_annotations in statuses.items():
            self._tally.add(number, Status(status), n_annotations)
        self._writing = self._writer.submit(self._insert, self._batch)
        self._before, self._batch = self._batch, _ImportBatch()

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.result()

    def _insert(self, batch: _ImportBatch) -> None:
        with self._database.writing() as connection:
            for table in (items, annotated, queue_values):
                insert_rows(connection, table.name, table.c.keys(), batch.rows[table.name])
            search.add(connection, self._dataset.id, batch.found_by)

    def finish(self) -> None:
        """Show everything once it is written."""
        self.write()
        self._wait()
        with self._database.writing() as connection:
            catalog.add_languages(connection, self._dataset, self._languages)
            add_labels(connection, self._dataset.id, self._labels)
            self._tally.write(connection, self._dataset.id)
            publish(connection, self._dataset.id, self._stop)
            assignment.deal(connection, replace(self._dataset, n_items=self._stop))

    def _add(self, record: Record) -> None:
        batch, dataset, position = self._batch, self._dataset.id, self._stop
        item = self._processes.store_process(record.item, position)
        self._languages[item.lang] += 1
        stored = to_json(item)
        batch.rows[items.name].append((dataset, position, item.id, stored))
        batch.ids.add(item.id)
        batch.found_by.append(search.entry_of_item(position, item))
        batch.characters += len(stored)
        numbers: list[AnnotationValues] = []
        for place, annotation in enumerate(record.annotations):
            number = self._number(annotation)
            values = annotation_values(annotation)
            stored = to_json(annotation)
            row = (dataset, position, number, place, values.status.value, *values[2:], stored)
            batch.rows[annotated.name].append(row)
            numbers.append(values)
            if search.may_find(stored):
                batch.found_by.append(search.entry_of_annotation(position, number, annotation))
            batch.characters += len(stored)
            if values.n_labels:
                self._labels |= dict.fromkeys(labels_of(annotation))
        queued = position_values(item, record.annotations, numbers)
        batch.rows[queue_values.name].append((dataset, position, *_QUEUED(queued), None))

    def _number(self, annotation: Annotation) -> int:
        name, kind = annotation.annotator, annotation.kind
        annotator = self._annotators.get(name)
        if annotator is None or annotator.kind is not kind:
            with self._database.writing() as connection:
                annotator = register(connection, self._dataset, name, kind)
            self._annotators[name] = annotator
        return annotator.id


def _read_chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield the records, so many at once that looking for their ids costs little."""
    chunk: list[Record] = []
    characters = 0
    for record in records:
        chunk.append(record)
        characters += len(record.item.answer) + sum(len(p.text) for p in record.item.passages)
        if len(chunk) == _DRAWN or characters >= _CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _refuse(_index: int, record: Record) -> None:
    raise repeated_id(record.item.id, "ids that are new to the dataset")

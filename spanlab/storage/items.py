"""Items, annotations and shared processes as they are stored: JSON, rows read and locked."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError
from sqlalchemy import Column, ColumnElement, Connection, and_, delete, func, insert, select

from spanlab.errors import InputError, NotFoundError
from spanlab.schema import (
    Annotation,
    Item,
    NodesInMemory,
    NodeSource,
    NodeTable,
    Process,
    ProcessNode,
    Record,
    SharedProcess,
)
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.engine import Database, once
from spanlab.storage.tables import annotated, annotators, items, process_nodes, processes

_WINDOW = 200  # positions read at once: few enough for long texts, enough for short ones

_Among = Callable[[Column[int]], ColumnElement[bool]]  # a condition on a column of positions


def to_json(model: BaseModel) -> str:
    """Return the JSON in which ``model`` is stored; what has its default value is left out.

    Raises:
        InputError: something in it, such as an item's ``meta``, is no JSON.
    """
    try:
        return model.model_dump_json(exclude_defaults=True)
    except PydanticSerializationError as error:
        raise InputError(
            f"cannot be stored: {error}", expected="Unicode text without lone surrogates"
        ) from error


@dataclass(frozen=True)
class StoredRecord:
    """An item and its annotations as they are stored."""

    position: int
    item: str
    annotations: tuple[str, ...]

    def record(self) -> Record:
        """Return the record; that its quotes are right was checked when it came in."""
        return Record.model_construct(
            item=Item.model_validate_json(self.item),
            annotations=tuple(
                Annotation.model_validate_json(annotation) for annotation in self.annotations
            ),
        )


def position_of(connection: Connection, dataset: DatasetRow, item_id: str) -> int:
    """Return where in the dataset the item is.

    Raises:
        NotFoundError: it is not there.
    """

    def read() -> int | None:
        here = (items.c.dataset_id == dataset.id, items.c.item_id == item_id)
        return connection.execute(select(items.c.position).where(*here)).scalar_one_or_none()

    position = once(connection, ("position", dataset.id, item_id), read)
    if position is None or position >= dataset.n_items:
        raise NotFoundError(f"the dataset {dataset.name!r} has no item {item_id!r}")
    return position


def one(connection: Connection, dataset: DatasetRow, position: int) -> StoredRecord:
    """Return the item at ``position`` with its annotations."""
    (stored,) = _read(connection, dataset.id, lambda column: column == position, None)
    return stored


def locked(
    connection: Connection, dataset: DatasetRow, ids: Collection[str]
) -> dict[str, tuple[int, Item]]:
    """Lock items for writing annotations, and return each one's position and content by id.

    Raises:
        NotFoundError: one of them is not there.
    """
    rows = connection.execute(
        select(items.c.item_id, items.c.position, items.c.json)
        .where(
            items.c.dataset_id == dataset.id,
            items.c.item_id.in_(list(ids)),
            items.c.position < dataset.n_items,
        )
        .order_by(items.c.position)
        .with_for_update(key_share=True)
    )
    by_id = {row.item_id: (row.position, Item.model_validate_json(row.json)) for row in rows}
    for item_id in ids:
        if item_id not in by_id:
            raise NotFoundError(f"the dataset {dataset.name!r} has no item {item_id!r}")
    return by_id


def lock(connection: Connection, dataset: int, start: int, stop: int) -> None:
    """Keep other transactions from changing annotations of the items at ``[start, stop)``.

    SQLite needs no row locks: only one transaction writes at a time.
    """
    connection.execute(
        select(items.c.position)
        .where(items.c.dataset_id == dataset, items.c.position >= start, items.c.position < stop)
        .order_by(items.c.position)
        .with_for_update(key_share=True)
    ).all()


def all_of(
    connection: Connection, dataset: DatasetRow, names: Sequence[str] | None
) -> Iterator[StoredRecord]:
    """Yield all items in import order with the annotations of ``names`` (None: of everybody).

    Raises:
        NotFoundError: a name that has annotated nothing here.
    """
    chosen = None if names is None else _ids(connection, dataset, names)
    for start in range(0, dataset.n_items, _WINDOW):
        stop = min(start + _WINDOW, dataset.n_items)
        yield from _read(connection, dataset.id, _between(start, stop), chosen)


def at(
    connection: Connection, dataset: DatasetRow, positions: Sequence[int]
) -> Iterator[StoredRecord]:
    """Yield the items at ``positions`` with all annotations, in import order."""
    there = sorted({position for position in positions if 0 <= position < dataset.n_items})
    for first in range(0, len(there), _WINDOW):
        yield from _read(connection, dataset.id, _in(there[first : first + _WINDOW]), None)


def _between(start: int, stop: int) -> _Among:
    return lambda column: and_(column >= start, column < stop)


def _in(positions: Sequence[int]) -> _Among:
    return lambda column: column.in_(positions)


def _read(
    connection: Connection, dataset: int, among: _Among, chosen: Collection[int] | None
) -> Iterator[StoredRecord]:
    by_position: dict[int, list[str]] = defaultdict(list)
    query = (
        select(annotated.c.position, annotated.c.json)
        .where(annotated.c.dataset_id == dataset, among(annotated.c.position))
        .order_by(annotated.c.position, annotated.c.place)
    )
    if chosen is not None:
        query = query.where(annotated.c.annotator_id.in_(chosen))
    for position, text in connection.execute(query).all():
        by_position[position].append(text)
    rows = connection.execute(
        select(items.c.position, items.c.json)
        .where(items.c.dataset_id == dataset, among(items.c.position))
        .order_by(items.c.position)
    )
    for position, text in rows.all():
        yield StoredRecord(position, text, tuple(by_position[position]))


def _ids(connection: Connection, dataset: DatasetRow, names: Sequence[str]) -> set[int]:
    rows = connection.execute(
        select(annotators.c.name, annotators.c.id).where(
            annotators.c.dataset_id == dataset.id, annotators.c.n_annotations > 0
        )
    )
    ids = {row.name: row.id for row in rows}
    for name in names:
        if name not in ids:
            there = ", ".join(repr(name) for name in ids) or "nobody"
            raise NotFoundError(
                f"{name!r} has annotated nothing in {dataset.name!r}; who has: {there}"
            )
    return {ids[name] for name in names}


_NODES = 4096  # written in one transaction: a reviewer's write waits for one at most …
_CHARACTERS = 8_000_000  # … and fewer if they are long
_ASKED = 500  # ids in one query
_WITH_ITEM = 50_000  # characters of texts up to which a process is kept with its item


class StoredNodes:
    """The nodes of a process in the database; see ``shared_process.NodeSource``."""

    def __init__(self, database: Database, dataset: int, name: str) -> None:
        self._database, self._dataset, self._name = database, dataset, name

    def sizes(self) -> Mapping[str, int]:
        """Return how many nodes each stage has, earliest stage first."""
        query = select(processes.c.stages).where(*_called(self._dataset, self._name))
        with self._database.reading() as connection:
            stages: str = connection.execute(query).scalar_one()
        return dict(json.loads(stages))

    def find(self, nodes: Collection[str]) -> list[ProcessNode]:
        """Return the nodes with these ids that there are."""
        ids, texts = list(nodes), list[str]()
        with self._database.reading() as connection:
            for first in range(0, len(ids), _ASKED):
                some = process_nodes.c.node.in_(ids[first : first + _ASKED])
                texts += connection.execute(self._nodes().where(some)).scalars()
        return [ProcessNode.model_validate_json(text) for text in texts]

    def all(self) -> Iterator[ProcessNode]:
        """Yield all nodes, in the order in which they came."""
        query = self._nodes().order_by(process_nodes.c.place).execution_options(yield_per=_NODES)
        with self._database.reading() as connection:
            for text in connection.execute(query).scalars():
                yield ProcessNode.model_validate_json(text)

    def is_in(self, database: Database, dataset: int) -> bool:
        """Say whether they are nodes of this dataset."""
        return (self._database.url, self._dataset) == (database.url, dataset)

    def _nodes(self) -> Any:
        return (
            select(process_nodes.c.json)
            .join(
                processes,
                (processes.c.dataset_id == process_nodes.c.dataset_id)
                & (processes.c.id == process_nodes.c.process_id),
            )
            .where(*_called(self._dataset, self._name))
        )


class ProcessWriter:
    """Writes the processes that the items of an import share, each when its first item comes."""

    def __init__(self, database: Database, dataset: DatasetRow) -> None:
        self._database, self._dataset = database, dataset
        self._written: set[str] = set()

    def take(self, item: Item, position: int) -> Item:
        """Store the process of an item unless it is small, and return the item that refers to it.

        Raises:
            InputError: the nodes are not at hand, the answer is no node of it, or the dataset has
                another process of this id.
        """
        process = item.process
        if process is None or (isinstance(process, Process) and _is_small(process)):
            return item
        if isinstance(process, Process):
            source: NodeSource | None = NodesInMemory(NodeTable(process.nodes))
            shared = SharedProcess(id=item.id, terminal=process.terminal.id)
        else:
            source, shared = process.source, process
        self._check(shared, source)
        if source is not None and shared.id not in self._written:
            at = (self._database, self._dataset.id)
            if not (isinstance(source, StoredNodes) and source.is_in(*at)):
                self._write(shared.id, source, position)
            self._written.add(shared.id)
        return item.model_copy(update={"process": shared})

    def _check(self, shared: SharedProcess, source: NodeSource | None) -> None:
        if source is None:
            raise InputError(
                "the nodes of this process are not at hand", field="process.id", found=shared.id
            )
        if not source.find([shared.terminal]):
            raise InputError(
                f"the process {shared.id!r} has no such node",
                field="process.terminal",
                found=shared.terminal,
            )

    def _write(self, name: str, source: NodeSource, first: int) -> None:
        number = self._enter(name, source, first)
        rows: list[dict[str, Any]] = []
        characters = 0
        for place, node in enumerate(source.all()):
            text = node.model_dump_json(exclude_defaults=True)
            rows.append({**number, "place": place, "node": node.id, "json": text})
            characters += len(text)
            if len(rows) == _NODES or characters >= _CHARACTERS:
                self._insert(rows)
                rows, characters = [], 0
        self._insert(rows)

    def _insert(self, rows: list[dict[str, Any]]) -> None:
        if rows:
            with self._database.writing() as connection:
                connection.execute(insert(process_nodes), rows)

    def _enter(self, name: str, source: NodeSource, first: int) -> dict[str, int]:
        dataset = self._dataset.id
        with self._database.writing() as connection:
            same_name = select(processes.c.id).where(*_called(dataset, name))
            if connection.execute(same_name).one_or_none() is not None:
                raise InputError(
                    "the dataset has a process of this id already",
                    field="process.id",
                    found=name,
                    expected="another id, or a new dataset",
                )
            last = select(func.max(processes.c.id)).where(processes.c.dataset_id == dataset)
            number = (connection.execute(last).scalar() or 0) + 1
            row = {"dataset_id": dataset, "id": number, "name": name, "first_position": first}
            stages = json.dumps(list(source.sizes().items()))
            connection.execute(insert(processes).values(**row, stages=stages))
        return {"dataset_id": dataset, "process_id": number}


def with_nodes(record: Record, database: Database, dataset: DatasetRow) -> Record:
    """Return a record whose item's shared process, if it has one, can be read."""
    process = record.item.process
    if not isinstance(process, SharedProcess):
        return record
    at_hand = process.among(StoredNodes(database, dataset.id, process.id))
    item = record.item.model_copy(update={"process": at_hand})
    return record.model_copy(update={"item": item})


def remove_processes(database: Database, dataset: int, keep: int) -> None:
    """Delete a dataset's processes whose first item is at ``keep`` or above, piece by piece."""
    unseen = (processes.c.dataset_id == dataset, processes.c.first_position >= keep)
    with database.reading() as connection:
        numbers = connection.execute(select(processes.c.id).where(*unseen)).scalars().all()
    for number in numbers:
        mine = (process_nodes.c.dataset_id == dataset, process_nodes.c.process_id == number)
        with database.reading() as connection:
            last = select(func.max(process_nodes.c.place)).where(*mine)
            end = connection.execute(last).scalar()
        for stop in range(0 if end is None else end + 1, 0, -_NODES):
            piece = process_nodes.c.place >= stop - _NODES
            with database.writing() as connection:
                connection.execute(delete(process_nodes).where(*mine, piece))
    with database.writing() as connection:
        connection.execute(delete(processes).where(*unseen))


def _called(dataset: int, name: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return (processes.c.dataset_id == dataset, processes.c.name == name)


def _is_small(process: Process) -> bool:
    return sum(len(node.text) for node in process.nodes) <= _WITH_ITEM

"""Processes that items share, as they are stored: nodes apart, read when they are looked at."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert, select

from spanlab.base.errors import InputError
from spanlab.schema import (
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
from spanlab.storage.engine import Database
from spanlab.storage.tables import process_nodes, processes

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
        query = select(processes.c.stages).where(*_named_process(self._dataset, self._name))
        with self._database.reading() as connection:
            stages: str = connection.execute(query).scalar_one()
        return dict(json.loads(stages))

    def find(self, nodes: Collection[str]) -> list[ProcessNode]:
        """Return the nodes with these ids that there are."""
        ids, texts = list(nodes), list[str]()
        with self._database.reading() as connection:
            for start in range(0, len(ids), _ASKED):
                is_asked_for = process_nodes.c.node.in_(ids[start : start + _ASKED])
                texts += connection.execute(self._nodes().where(is_asked_for)).scalars()
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
            .where(*_named_process(self._dataset, self._name))
        )


class ProcessWriter:
    """Writes the processes that the items of an import share, each when its first item comes."""

    def __init__(self, database: Database, dataset: DatasetRow) -> None:
        self._database, self._dataset = database, dataset
        self._written: set[str] = set()

    def store_process(self, item: Item, position: int) -> Item:
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
            database, dataset = self._database, self._dataset.id
            if not (isinstance(source, StoredNodes) and source.is_in(database, dataset)):
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

    def _write(self, name: str, source: NodeSource, position: int) -> None:
        number = self._enter(name, source, position)
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

    def _enter(self, name: str, source: NodeSource, position: int) -> dict[str, int]:
        dataset = self._dataset.id
        with self._database.writing() as connection:
            same_name = select(processes.c.id).where(*_named_process(dataset, name))
            if connection.execute(same_name).one_or_none() is not None:
                raise InputError(
                    "the dataset has a process of this id already",
                    field="process.id",
                    found=name,
                    expected="another id, or a new dataset",
                )
            highest = select(func.max(processes.c.id)).where(processes.c.dataset_id == dataset)
            number = (connection.execute(highest).scalar() or 0) + 1
            row = {"dataset_id": dataset, "id": number, "name": name, "first_position": position}
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
        its_nodes = (process_nodes.c.dataset_id == dataset, process_nodes.c.process_id == number)
        with database.reading() as connection:
            highest = select(func.max(process_nodes.c.place)).where(*its_nodes)
            end = connection.execute(highest).scalar()
        for stop in range(0 if end is None else end + 1, 0, -_NODES):
            piece = process_nodes.c.place >= stop - _NODES
            with database.writing() as connection:
                connection.execute(delete(process_nodes).where(*its_nodes, piece))
    with database.writing() as connection:
        connection.execute(delete(processes).where(*unseen))


def _named_process(dataset: int, name: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return (processes.c.dataset_id == dataset, processes.c.name == name)


def _is_small(process: Process) -> bool:
    return sum(len(node.text) for node in process.nodes) <= _WITH_ITEM

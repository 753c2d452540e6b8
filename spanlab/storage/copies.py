"""Copies: a dataset as a new one, and a whole database as one SQLite file, and back from it.

The file is a database of spanlab like any other: one that an earlier version wrote is brought up
to date when it is opened. What is left out can be had again or was not finished: answers of models,
searches and tools, jobs of the JSON API, imports under way, and items reserved for somebody. Keys
and invitations stay where they were made, and so does the log of access, which nothing replaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    Table,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    update,
)

from spanlab.base.errors import StoreError
from spanlab.schema import Annotation, Item
from spanlab.storage import catalog, search, tables
from spanlab.storage.engine import Database, insert_rows
from spanlab.storage.staging import publish, stage
from spanlab.storage.tables import (
    DELETING,
    READY,
    annotated,
    annotators,
    datasets,
    items,
    labels,
    languages,
    memories,
    processes,
    queue_values,
)
from spanlab.storage.upgrade import create

_ROWS = 2000  # copied at once
_OF_DATASET = (  # parents first
    annotators,
    languages,
    labels,
    tables.processes,
    tables.process_nodes,
    items,
    annotated,
    queue_values,
)
# Of whatever the database was asked before, and what was done with it.
_KEPT = {tables.answers, tables.tool_calls, tables.access_log}
_LEFT_OUT = _KEPT | {tables.access_tokens, tables.api_jobs, tables.loads, tables.reservations}
_ALL = tables.metadata.sorted_tables  # parents first
_NUMBERED = (datasets, memories)  # PostgreSQL counts their rows by itself


def duplicate(database: Database, name: str, new: str, *, version: bool = False) -> int:
    """Copy the dataset ``name`` as it is now to the new dataset ``new``; return the item count.

    Review logs are not copied: a log in the copy starts from the person's annotation so far. With
    ``version`` the copy is one of its versions, and never changes.

    Raises:
        NotFoundError: there is no dataset ``name``.
        StoreError: ``new`` is taken.
        UsageError: ``new`` cannot name a dataset.
    """
    with stage(database, new, create=True) as copy, database.reading() as snapshot:
        source = catalog.find(snapshot, name)
        published = select(tables.processes.c.id).where(
            tables.processes.c.dataset_id == source.id,
            tables.processes.c.first_position < source.n_items,
        )
        for table in _OF_DATASET:
            columns = [literal(copy.id) if c.name == "dataset_id" else c for c in table.c]
            query: Select[Any] = select(*columns).where(table.c.dataset_id == source.id)
            for column in ("position", "first_position"):  # an import may be under way above
                if column in table.c:
                    query = query.where(table.c[column] < source.n_items)
            if table is tables.process_nodes:
                query = query.where(tables.process_nodes.c.process_id.in_(published))
            query = query.execution_options(yield_per=_ROWS)
            for rows in snapshot.execute(query).partitions():
                with database.writing() as connection:
                    copies = [tuple(row) for row in rows]
                    insert_rows(connection, table.name, table.c.keys(), copies)
                    search.add(connection, copy.id, _search_entries(table, rows))
        with database.writing() as connection:
            publish(connection, copy.id, source.n_items)
            setting = select(datasets.c.settings).where(datasets.c.id == source.id)
            connection.execute(
                update(datasets)
                .where(datasets.c.id == copy.id)
                .values(
                    settings=setting.scalar_subquery(),
                    version_of=source.id if version else None,
                    digest="" if version else None,
                )
            )
        return source.n_items


def _search_entries(table: Table, rows: Sequence[Row[Any]]) -> Iterator[search.SearchEntry]:
    for row in rows:
        if table is items:
            yield search.entry_of_item(row.position, Item.model_validate_json(row.json))
        elif table is annotated and search.may_find(row.json):
            annotation = Annotation.model_validate_json(row.json)
            yield search.entry_of_annotation(row.position, row.annotator_id, annotation)


def write_copy(database: Database, target: Path) -> None:
    """Write what a database holds at one moment into a new SQLite file, while others work.

    Args:
        database: of the newest revision.
        target: where no file is yet.

    Raises:
        StoreError: the database, or the disk, refuses.
    """
    copy = Database(f"sqlite:///{target}")
    try:
        with database.reading() as source, copy.writing() as connection:
            create(connection)
            _copy_rows(source, connection)
    finally:
        copy.close()


def read_copy(source: Connection, target: Connection, *, replace: bool) -> None:
    """Put what a copy holds into a database of the newest revision.

    Args:
        source: reads the copy, of the newest revision, too.
        target: in a transaction that may write.
        replace: whether what is there goes; otherwise there may be nothing.

    Raises:
        StoreError: there is something, and ``replace`` is not set.
    """
    if replace:
        target.execute(update(datasets).values(state=DELETING))  # lets go of the logs
        for table in reversed([table for table in _ALL if table not in _KEPT]):
            target.execute(delete(table))
        target.execute(text("DELETE FROM item_search"))
    elif any(target.execute(select(table.c.id).limit(1)).first() for table in _NUMBERED):
        raise StoreError(
            "the database is not empty: name a new one by SPANLAB_HOME or SPANLAB_DATABASE_URL, or "
            "add --yes to replace all that it holds"
        )
    _copy_rows(source, target)
    if target.dialect.name == "postgresql":
        for table in _NUMBERED:  # else it would give the next row a number that is taken
            sequence = func.pg_get_serial_sequence(table.name, "id")
            target.execute(select(func.setval(sequence, func.max(table.c.id))))


def _copy_rows(source: Connection, target: Connection) -> None:
    for table in _ALL:
        if table not in _LEFT_OUT:
            rows = source.execution_options(yield_per=_ROWS).execute(_select_finished(table))
            for batch in rows.partitions():
                insert_rows(target, table.name, table.c.keys(), [tuple(row) for row in batch])
    for dataset in source.execute(_select_finished(datasets)).all():
        search.copy(source, target, dataset.id, dataset.n_items)


def _select_finished(table: Table) -> Select[Any]:
    """Select the rows of a table but for those of imports and deletions that are under way."""
    query = select(table)
    if table is tables.process_nodes:
        same = (table.c.dataset_id == processes.c.dataset_id, table.c.process_id == processes.c.id)
        return _select_finished(processes).with_only_columns(*table.c).where(*same)
    if table is not datasets:
        if "dataset_id" not in table.c:
            return query
        if table is tables.roles:
            everywhere = table.c.dataset_id.is_(None)
            beside = query.outerjoin(datasets, table.c.dataset_id == datasets.c.id)
            return beside.where(or_(everywhere, datasets.c.state == READY))
        query = query.where(table.c.dataset_id == datasets.c.id)
    for column in {"position", "first_position"} & set(table.c.keys()):
        query = query.where(table.c[column] < datasets.c.n_items)
    return query.where(datasets.c.state == READY)

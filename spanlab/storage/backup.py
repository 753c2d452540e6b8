"""A whole database as one SQLite file, and back into one of either kind.

The file is a database of spanlab like any other: one that an earlier version wrote is brought up
to date when it is opened. What is left out can be had again or was not finished: answers of models,
searches and tools, jobs of the JSON API, imports under way, and items reserved for somebody. Keys
and invitations stay where they were made, and so does the log of access, which nothing replaces.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, Table, delete, func, or_, select, text, update

from spanlab.errors import StoreError
from spanlab.storage import search, tables
from spanlab.storage.engine import Database, insert_rows
from spanlab.storage.tables import DELETING, READY, datasets, memories, processes
from spanlab.storage.upgrade import create

_ROWS = 2000  # copied at once
# Of whatever the database was asked before, and what was done with it.
_KEPT = {tables.answers, tables.tool_calls, tables.access_log}
_LEFT_OUT = _KEPT | {tables.access_tokens, tables.api_jobs, tables.loads, tables.reservations}
_ALL = tables.metadata.sorted_tables  # parents first
_NUMBERED = (datasets, memories)  # PostgreSQL counts their rows by itself


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
            rows = source.execution_options(yield_per=_ROWS).execute(_finished(table))
            for batch in rows.partitions():
                insert_rows(target, table.name, table.c.keys(), [tuple(row) for row in batch])
    for dataset in source.execute(_finished(datasets)).all():
        search.copy(source, target, dataset.id, dataset.n_items)


def _finished(table: Table) -> Select[Any]:
    """Select the rows of a table but for those of imports and deletions that are under way."""
    query = select(table)
    if table is tables.process_nodes:
        same = (table.c.dataset_id == processes.c.dataset_id, table.c.process_id == processes.c.id)
        return _finished(processes).with_only_columns(*table.c).where(*same)
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

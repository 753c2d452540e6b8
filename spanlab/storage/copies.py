"""Copies: a dataset as a new one, and a whole database as one SQLite file, and back from it.

The file is a database of spanlab like any other: one that an earlier version wrote is brought up
to date when it is opened. What is left out can be had again or was not finished: answers of models,
searches and tools, jobs of the JSON API, imports under way, and items reserved for somebody. Keys
and links to reports stay where they were made. Invitations come along, so that people get in after
a move, and so does the log of access, where there is none: nothing replaces a log.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Select, Table, delete, func, literal, or_, select, text, update

from spanlab.base.errors import StoreError
from spanlab.storage import catalog, search, tables
from spanlab.storage.engine import Database, insert_rows, learn_sizes
from spanlab.storage.moves import arriving, publish
from spanlab.storage.tables import DELETING, READY, datasets, memories, processes
from spanlab.storage.upgrade import create

_ROWS = 2000  # copied at once
_OF_DATASET = (  # parents first
    *(tables.annotators, tables.languages, tables.labels, processes, tables.process_nodes),
    *(tables.items, tables.annotated, tables.queue_values),
)
# Of whatever the database was asked before, and what was done with it.
_KEPT = {tables.answers, tables.tool_calls, tables.access_log}
_LEFT_OUT = {tables.answers, tables.tool_calls, tables.api_jobs, tables.loads, tables.reservations}
_LEFT_OUT |= {tables.waiting_traces, tables.waiting_parts}
_MOVED = ("invitation", "ended login")  # the kinds of tokens that come along
_ALL = tables.metadata.sorted_tables  # parents first
_BACKED_UP = [table for table in _ALL if table not in _LEFT_OUT]
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
    with arriving(database, new, create=True) as copy, database.reading() as snapshot:
        source = catalog.find(snapshot, name)
        _copy_rows(snapshot, database.writing, _OF_DATASET, moved=(source.id, copy.id))
        values = {"version_of": source.id, "digest": ""} if version else {}
        settings = catalog.find_row(snapshot, name).settings
        with database.writing() as connection:
            publish(connection, copy.id, source.n_items, settings=settings, **values)
        return source.n_items


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
            _copy_rows(source, lambda: nullcontext(connection), _BACKED_UP)
    finally:
        copy.close()


def read_copy(source: Connection, target: Connection, *, replace: bool) -> bool:
    """Put what a copy holds into a database of the newest revision.

    Args:
        source: reads the copy, of the newest revision, too.
        target: in a transaction that may write.
        replace: whether what is there goes; otherwise there may be nothing.

    Returns:
        Whether the log of access came along; where there is one already, that one stays.

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
    has_log = target.execute(select(tables.access_log.c.id).limit(1)).first() is not None
    copied = [table for table in _BACKED_UP if not (has_log and table is tables.access_log)]
    _copy_rows(source, lambda: nullcontext(target), copied)
    if target.dialect.name == "postgresql":
        for table in (
            *_NUMBERED,
            tables.access_log,
        ):  # else it would give the next row a number that is taken
            sequence = func.pg_get_serial_sequence(table.name, "id")
            target.execute(select(func.setval(sequence, func.max(table.c.id))))
    learn_sizes(target)
    return not has_log


@contextmanager
def copies_folder(beside: Path) -> Iterator[Path]:
    """Make a folder for copies of a database, which goes when the block ends.

    What is left by a process that was killed goes with the next one, see ``sweep_copies``.
    """
    sweep_copies(beside)
    with (
        tempfile.TemporaryDirectory(dir=beside, prefix=_COPIES) as work,
        Path(work, _IN_USE).open("xb") as in_use,
    ):
        fcntl.flock(in_use, fcntl.LOCK_EX)  # as long as this process lives
        yield Path(work)


def sweep_copies(folder: Path) -> None:
    """Remove what killed backups and restores left in a folder: copies of whole databases."""
    for left in folder.glob(f"{_COPIES}*"):
        with suppress(OSError), Path(left, _IN_USE).open("rb") as in_use:
            fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left)


_COPIES: Final = ".restore-"  # how the folders begin that hold them
_IN_USE: Final = "in-use"


def _copy_rows(
    source: Connection,
    writing: Callable[[], AbstractContextManager[Connection]],
    copied: Iterable[Table],
    *,
    moved: tuple[int, int] | None = None,
) -> None:
    """Copy rows of finished datasets, with what they are found by.

    Args:
        source: reads one snapshot.
        writing: gives the connection for each batch.
        copied: the tables, parents first.
        moved: the one dataset that is copied, and the number that it gets; None for all.
    """
    for table in copied:
        query = _select_finished(table)
        if moved is not None:
            columns = [literal(moved[1]) if c.name == "dataset_id" else c for c in table.c]
            query = query.where(datasets.c.id == moved[0]).with_only_columns(*columns)
        for rows in source.execute(query.execution_options(yield_per=_ROWS)).partitions():
            with writing() as target:
                insert_rows(target, table.name, table.c.keys(), [tuple(row) for row in rows])
    for row in source.execute(_select_finished(datasets)).all():
        if moved is None or row.id == moved[0]:
            search.copy(source, writing, row.id, row.n_items, moved[1] if moved else row.id)


def _select_finished(table: Table) -> Select[Any]:
    """Select the rows of a table but for those of imports and deletions that are under way."""
    query = select(table)
    if table is tables.process_nodes:
        same = (table.c.dataset_id == processes.c.dataset_id, table.c.process_id == processes.c.id)
        return _select_finished(processes).with_only_columns(*table.c).where(*same)
    if table is not datasets:
        if "dataset_id" not in table.c:
            return query
        if table in {tables.roles, tables.access_tokens}:
            if table is tables.access_tokens:
                query = query.where(table.c.kind.in_(_MOVED))
            everywhere = table.c.dataset_id.is_(None)
            beside = query.outerjoin(datasets, table.c.dataset_id == datasets.c.id)
            return beside.where(or_(everywhere, datasets.c.state == READY))
        query = query.where(table.c.dataset_id == datasets.c.id)
    for column in {"position", "first_position"} & set(table.c.keys()):
        query = query.where(table.c[column] < datasets.c.n_items)
    return query.where(datasets.c.state == READY)

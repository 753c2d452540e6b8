"""Imports and deletions of datasets: short transactions that readers see all at once.

One transaction over a long import would keep every reviewer's write waiting on SQLite. So an
import writes batches above ``datasets.n_items``, where no reader looks, and raises that number at
its end. While it works it holds a lock that is released when its process ends, however it ends; a
row in ``loads`` without that lock belongs to an import that died, and its rows are swept up.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import (
    Connection,
    delete,
    exists,
    func,
    insert,
    select,
    text,
    update,
)

from spanlab.base.errors import StoreError, UnderImportError
from spanlab.storage import catalog, search, tables
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.engine import Database, in_words
from spanlab.storage.items import lock
from spanlab.storage.processes import remove_processes
from spanlab.storage.tables import (
    DELETING,
    LOADING,
    READY,
    annotated,
    annotators,
    datasets,
    items,
    labels,
    languages,
    loads,
    operations,
    queue_values,
    reservations,
    reviews,
)

_PIECE = 2000  # positions deleted in one transaction


@contextmanager
def stage(database: Database, name: str, *, create: bool) -> Iterator[DatasetRow]:
    """Open the dataset ``name`` for one import; its rows are swept away if it fails.

    The block gets the dataset as readers see it, writes above that, and ends with ``publish``.
    With ``create`` the dataset must be new, otherwise it is made if it is not there.

    Raises:
        UnderImportError: another import into it is under way.
        StoreError: the name is taken and ``create`` is set.
    """
    sweep(database)
    with ExitStack() as stack:
        with database.writing() as connection:
            opened = _open(connection, name, create=create)
            _claim(connection, database, opened, stack)
        try:
            yield opened
        except BaseException:
            with suppress(StoreError):  # such as a full disk: a later sweep does it
                _clear(database, opened.id)
            raise


def publish(connection: Connection, dataset: int, n_items: int) -> None:
    """Let readers see the positions of ``dataset`` up to ``n_items``; ends the import."""
    connection.execute(
        update(datasets).where(datasets.c.id == dataset).values(state=READY, n_items=n_items)
    )
    connection.execute(delete(loads).where(loads.c.dataset_id == dataset))


def remove(database: Database, find: Callable[[Connection], DatasetRow | None]) -> bool:
    """Delete the dataset that ``find`` names, with all that belongs to it.

    Readers stop seeing it at once. Nobody comes in between what ``find`` looks at and that.

    Returns:
        Whether ``find`` named one.

    Raises:
        NotFoundError: ``find`` found that there is none.
        StoreError: an import into it is under way.
    """
    sweep(database)
    with ExitStack() as stack:
        with database.writing() as connection:
            dataset = find(connection)
            if dataset is None:
                return False
            _claim(connection, database, dataset, stack)
            _hide(connection, dataset.id)
        _clear(database, dataset.id)
    return True


def sweep(database: Database) -> None:
    """Clean up after imports and deletions that died half-way; cheap if there are none.

    Raises:
        StoreError: the database refuses, such as on a full disk.
    """
    with database.reading() as connection:
        open_ones = connection.execute(select(loads.c.dataset_id)).scalars().all()
    for dataset in open_ones:
        with claim(database, dataset) as is_dead:
            if is_dead:
                _clear(database, dataset)


def _open(connection: Connection, name: str, *, create: bool) -> DatasetRow:
    row = connection.execute(
        select(datasets.c.id, datasets.c.state, datasets.c.n_items, datasets.c.digest)
        .where(datasets.c.name == name)
        .with_for_update(key_share=True)
    ).one_or_none()
    if row is None or create:
        try:
            return DatasetRow(catalog.create(connection, name, LOADING), name, 0)
        except StoreError:
            if create:
                raise
            raise busy(name) from None  # another process has made it since
    if row.state != READY:
        raise busy(name)
    if row.digest is not None:
        raise catalog.frozen_version_error(name)
    return DatasetRow(row.id, name, row.n_items)


def _claim(
    connection: Connection, database: Database, dataset: DatasetRow, stack: ExitStack
) -> None:
    """Enter a load of ``dataset`` and hold its lock until ``stack`` closes."""
    load = select(loads.c.dataset_id).where(loads.c.dataset_id == dataset.id)
    if connection.execute(load).one_or_none() is not None:
        raise busy(dataset.name)
    now = datetime.now(UTC).isoformat()
    connection.execute(insert(loads).values(dataset_id=dataset.id, started=now))
    if not stack.enter_context(claim(database, dataset.id)):
        raise busy(dataset.name)


def busy(name: str) -> UnderImportError:
    """Return the error that an import is under way."""
    return UnderImportError(f"an import into {name!r} is under way: wait for its end")


def _hide(connection: Connection, dataset: int) -> None:
    # The name is free again at once; no user's dataset can have one with a control character.
    hidden = {"state": DELETING, "name": f"\x1f{dataset}"}
    connection.execute(update(datasets).where(datasets.c.id == dataset).values(hidden))


def _clear(database: Database, dataset: int) -> None:
    """Delete the rows of ``dataset`` that readers do not see, in short transactions."""
    with database.writing() as connection:
        row = connection.execute(
            select(datasets.c.state, datasets.c.n_items).join(loads).where(datasets.c.id == dataset)
        ).one_or_none()
        if row is None:  # it came to its end, or another process has swept it
            return
        if row.state != READY:
            _hide(connection, dataset)
        keep = row.n_items if row.state == READY else 0
        query = select(func.max(items.c.position)).where(items.c.dataset_id == dataset)
        highest = connection.execute(query).scalar()
    for stop in range(keep if highest is None else highest + 1, keep, -_PIECE):
        with database.writing() as connection:
            _delete_items(connection, dataset, max(keep, stop - _PIECE), stop)
    remove_processes(database, dataset, keep)
    with database.writing() as connection:
        if row.state == READY:
            _forget_failed_append(connection, dataset)
        else:
            people = (tables.entrances, tables.guidelines_read, tables.queues)
            for table in (labels, annotators, languages, loads, *people):
                connection.execute(delete(table).where(table.c.dataset_id == dataset))
            versions = update(datasets).where(datasets.c.version_of == dataset)
            connection.execute(versions.values(version_of=None))
            connection.execute(delete(datasets).where(datasets.c.id == dataset))


def _delete_items(connection: Connection, dataset: int, start: int, stop: int) -> None:
    # Whoever still writes to these items comes to an end first, or finds them gone.
    lock(connection, dataset, start, stop)
    for table in (
        *(operations, reviews, annotated, reservations),
        *(tables.known_given, tables.queue_items, queue_values, items),
    ):
        where = (table.c.dataset_id == dataset, table.c.position >= start, table.c.position < stop)
        connection.execute(delete(table).where(*where))
    search.remove(connection, dataset, start, stop)


def _forget_failed_append(connection: Connection, dataset: int) -> None:
    has_annotations = exists().where(
        annotated.c.dataset_id == dataset, annotated.c.annotator_id == annotators.c.id
    )
    connection.execute(
        delete(annotators).where(
            annotators.c.dataset_id == dataset, annotators.c.n_annotations == 0, ~has_annotations
        )
    )
    connection.execute(delete(loads).where(loads.c.dataset_id == dataset))


_LOADS = 730_214  # first half of the PostgreSQL advisory locks that we take per dataset


@contextmanager
def claim(database: Database, dataset: int) -> Iterator[bool]:
    """Try to hold the one lock on loading ``dataset`` while the block runs; never waits.

    Yields:
        Whether it is held; False if another holder is alive, in this process or another.

    Raises:
        StoreError: it cannot be said whether there is another holder.
    """
    path = database.path
    lock = (
        _claim_in_postgresql(database, dataset)
        if path is None
        else _claim_byte(path.resolve().with_name(f"{path.name}-locks"), dataset)
    )
    with lock as is_held:
        yield is_held


@contextmanager
def _claim_in_postgresql(database: Database, dataset: int) -> Iterator[bool]:
    engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")
    key = {"loads": _LOADS, "dataset": dataset}
    with engine.connect() as connection:
        try_lock = text("SELECT pg_try_advisory_lock(:loads, :dataset)")
        is_held = bool(connection.execute(try_lock, key).scalar_one())
        try:
            yield is_held
        finally:
            if is_held:
                connection.execute(text("SELECT pg_advisory_unlock(:loads, :dataset)"), key)


class _LockFile(NamedTuple):
    """One file for all datasets of a database, as this process has it open.

    The system counts locks by process, and gives all of a file up when any descriptor of it is
    closed: so a process opens it once, and knows itself which datasets it holds.
    """

    descriptor: int
    held: set[int]


_lock_files: dict[tuple[int, Path], _LockFile] = {}  # by process, as a fork gets a copy, and path
_opening = threading.Lock()


@contextmanager
def _claim_byte(path: Path, dataset: int) -> Iterator[bool]:
    # A byte for each dataset, gone with the process. The file is never deleted: who has opened one
    # that others delete locks nobody out.
    is_held = _lock_byte(path, dataset)
    try:
        yield is_held
    finally:
        if is_held:
            _unlock_byte(path, dataset)


def _lock_byte(path: Path, dataset: int) -> bool:
    key = os.getpid(), path
    with _opening:
        try:
            file = _lock_files.get(key) or _LockFile(os.open(path, os.O_RDWR | os.O_CREAT), set())
        except OSError as error:
            raise _lock_error(path, error) from error
        _lock_files[key] = file
        try:
            if dataset not in file.held:
                fcntl.lockf(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, dataset)
                file.held.add(dataset)
                return True
        except (BlockingIOError, PermissionError):  # either, by POSIX: another process holds it
            pass
        except OSError as error:
            raise _lock_error(path, error) from error
        finally:
            _close_unused(key)
        return False


def _unlock_byte(path: Path, dataset: int) -> None:
    key = os.getpid(), path
    with _opening:
        file = _lock_files[key]
        fcntl.lockf(file.descriptor, fcntl.LOCK_UN, 1, dataset)
        file.held.remove(dataset)
        _close_unused(key)


def _close_unused(key: tuple[int, Path]) -> None:
    if not _lock_files[key].held:
        os.close(_lock_files.pop(key).descriptor)


def _lock_error(path: Path, error: Exception) -> StoreError:
    return StoreError(f"the lock {path} cannot be taken: {in_words(error, path)}")

"""One lock for each dataset, on what comes into it and on its deletion, among all processes.

Whoever holds it is alive: the system lets go of it when a process ends, however it ends. It is a
byte of a file beside an SQLite database, and an advisory lock in PostgreSQL.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import text

from spanlab.base.errors import StoreError
from spanlab.storage.engine import Database, in_words

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
    key = os.getpid(), path
    try:
        with _opening:
            is_held = _lock_byte(key, dataset)
    except OSError as error:
        raise StoreError(f"the lock {path} cannot be taken: {in_words(error, path)}") from error
    try:
        yield is_held
    finally:
        if is_held:
            with _opening:
                file = _lock_files[key]
                fcntl.lockf(file.descriptor, fcntl.LOCK_UN, 1, dataset)
                file.held.remove(dataset)
                _close_unused(key)


def _lock_byte(key: tuple[int, Path], dataset: int) -> bool:
    if key not in _lock_files:
        _lock_files[key] = _LockFile(os.open(key[1], os.O_RDWR | os.O_CREAT), set())
    file = _lock_files[key]
    try:
        if dataset in file.held:
            return False
        fcntl.lockf(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, dataset)
        file.held.add(dataset)
    except (BlockingIOError, PermissionError):  # either, by POSIX: another process holds it
        return False
    finally:
        _close_unused(key)
    return True


def _close_unused(key: tuple[int, Path]) -> None:
    if not _lock_files[key].held:
        os.close(_lock_files.pop(key).descriptor)

"""Locks that are released when the process that holds them ends, however it ends."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import text

from spanlab.errors import StoreError
from spanlab.storage.engine import Database, in_words, is_lock

_LOADS = 730_214  # first half of the PostgreSQL advisory locks that we take per dataset
_ATTEMPTS = 100  # to lock a file that others delete at the same moment


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
        else _claim_file(path.with_name(f"{path.name}-load{dataset}"))
    )
    with lock as held:
        yield held


@contextmanager
def _claim_in_postgresql(database: Database, dataset: int) -> Iterator[bool]:
    engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")
    key = {"loads": _LOADS, "dataset": dataset}
    with engine.connect() as connection:
        take = text("SELECT pg_try_advisory_lock(:loads, :dataset)")
        held = bool(connection.execute(take, key).scalar_one())
        try:
            yield held
        finally:
            if held:
                connection.execute(text("SELECT pg_advisory_unlock(:loads, :dataset)"), key)


@contextmanager
def _claim_file(path: Path) -> Iterator[bool]:
    # SQLite's own lock on a file beside the database: on every system the right kind, and
    # gone with the process. A file that was replaced between opening and locking locks nobody.
    for _ in range(_ATTEMPTS):
        before = _identity(path)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as error:
                if not is_lock(error):
                    raise _refused(path, error) from error
                yield False
                return
            if before is not None and _identity(path) == before:
                try:
                    yield True
                finally:
                    with suppress(OSError):  # Windows does not delete an open file
                        path.unlink()
                return
    yield False


def _identity(path: Path) -> int | None:
    try:
        path.touch()
    except OSError as error:
        raise _refused(path, error) from error
    return path.stat().st_ino


def _refused(path: Path, error: Exception) -> StoreError:
    return StoreError(f"the lock {path} cannot be taken: {in_words(error, path)}")

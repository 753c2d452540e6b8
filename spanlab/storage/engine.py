"""From a database URL to connections: SQLite or PostgreSQL, reading or writing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from spanlab.errors import StoreError, UsageError
from spanlab.storage.refusals import in_words
from spanlab.storage.urls import database_url, shown, watchful

BUSY_SECONDS = 30  # how long a write waits for another process's write before it gives up
_CACHE_KIB = 16_384  # of SQLite pages per connection
_WRITERS: dict[str, Lock] = {}  # one for each file: several stores of a process may share one


class Database:
    """Connections to one database, for any number of threads.

    Args:
        url: SQLAlchemy URL of an SQLite file or a PostgreSQL database.

    Raises:
        UsageError: the URL is neither, or its driver is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = _kept(database_url(url))
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._writer = _WRITERS.setdefault(str(self.url), Lock())
        self.engine = _sqlite(self.url) if self.is_sqlite else _postgresql(self.url)

    @property
    def path(self) -> Path | None:
        """The SQLite file, or None for PostgreSQL."""
        return Path(self.url.database or "") if self.is_sqlite else None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees one unchanging snapshot of the database.

        Raises:
            StoreError: the database refuses or cannot be reached.
        """
        # SQLite's transactions always see one snapshot, PostgreSQL's have to be told.
        snapshot = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._connected(snapshot) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection whose changes are durable once the block ends, or undone if it fails.

        On SQLite only one writes at a time, so that its reads stay valid until it has written.

        Raises:
            StoreError: the database refuses or cannot be reached, or others write for too long.
        """
        with self._turn(), self._connected({"spanlab_writes": True}) as connection:
            yield connection

    def close(self) -> None:
        """Close all connections that are not in use."""
        self.engine.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        # Threads of one process wait for each other here: SQLite itself would only look again
        # every now and then, up to 100 ms later. Other processes it does keep apart.
        if not self.is_sqlite:
            yield
        elif not self._writer.acquire(timeout=BUSY_SECONDS):
            raise StoreError(f"the database {self}: others write for too long")
        else:
            try:
                yield
            finally:
                self._writer.release()

    @contextmanager
    def _connected(self, options: dict[str, Any]) -> Iterator[Connection]:
        try:
            with self.engine.connect() as connection:
                connection.execution_options(**options)
                with connection.begin():
                    yield connection
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise StoreError(f"the database {self}: {in_words(error, self.path)}") from error

    def __str__(self) -> str:
        return shown(self.url)


def _kept(url: URL) -> URL:
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise UsageError("an SQLite database in memory forgets everything: name a file")
    return url


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, pool_size=8, max_overflow=-1)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # Transactions begin where we say so (see _begin), not where sqlite3 guesses.
    connection.isolation_level = None
    # synchronous=NORMAL: with a write-ahead log a killed process loses nothing that was
    # committed, and a power failure never breaks the file (it may cost the last moments).
    for pragma in (
        f"busy_timeout = {BUSY_SECONDS * 1000}",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
        f"cache_size = -{_CACHE_KIB}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("spanlab_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _postgresql(url: URL) -> Engine:
    try:
        return create_engine(watchful(url), pool_size=8, max_overflow=24, pool_pre_ping=True)
    except ArgumentError as error:
        raise UsageError(f"the database URL {shown(url)}: {error}") from error
    except ImportError as error:
        raise UsageError(
            f"PostgreSQL needs the driver psycopg: pip install 'spanlab[postgres]' ({error})"
        ) from error

"""URLs of databases, connections to SQLite or PostgreSQL, fast inserts, and refusals in words.

A network may fall silent: both ends of a connection notice that within seconds. The server has to,
because the transaction of a host that is gone would hold its locks for two hours otherwise, and
everybody who writes the same rows would wait. The host has to, because its calls would hang until
TCP gives up, after a quarter of an hour.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from threading import Lock, local
from typing import Any, TypeVar, cast

from sqlalchemy import URL, Connection, Engine, Insert, Table, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from spanlab.base.errors import StoreError, UsageError

BUSY_SECONDS = 30  # how long a write waits for another process's write before it gives up
_AT_ONCE = 512  # rows inserted by one statement
_READ_ONLY = (
    "its file or folder is read-only, and SQLite writes there also to read: copy the folder"
)
_CACHE_KIB = 16_384  # of SQLite pages per connection
_FOUND = "spanlab_found"  # of a connection that reads: what was looked up in its snapshot
_T = TypeVar("_T")
_WRITERS: dict[str, Lock] = {}  # one for each file: several stores of a process may share one


class _ThreadSnapshot(local):
    """The connection that a thread in ``Database.snapshot`` reads from."""

    contexts: ExitStack | None = None  # set while the thread is in the block
    connection: Connection | None = None


class Database:
    """Connections to one database, for any number of threads.

    Args:
        url: SQLAlchemy URL of an SQLite file or a PostgreSQL database.

    Raises:
        UsageError: the URL is neither, or its driver is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = _check_stored(database_url(url))
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._writer = _WRITERS.setdefault(str(self.url), Lock())
        self.engine = _sqlite(self.url) if self.is_sqlite else _postgresql(self.url)
        self._snapshot = _ThreadSnapshot()

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
        isolation = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        options = {**isolation, _FOUND: {}}
        snapshot = self._snapshot
        if snapshot.contexts is None:
            with self._connect(options) as connection:
                yield connection
            return
        with self._refusals_in_words():
            if snapshot.connection is None:
                snapshot.connection = snapshot.contexts.enter_context(self._connect(options))
            yield snapshot.connection

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let what this thread reads in the block come from one snapshot, until it writes.

        Reading in many small steps costs a transaction for each of them, and the same rows are
        looked up again (see ``once``).
        """
        if self._snapshot.contexts is not None:
            yield
            return
        with ExitStack() as contexts:
            self._snapshot.contexts = contexts
            try:
                yield
            finally:
                self._snapshot.contexts = self._snapshot.connection = None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection whose changes are durable once the block ends, or undone if it fails.

        On SQLite only one writes at a time, so that its reads stay valid until it has written.

        Raises:
            StoreError: the database refuses or cannot be reached, or others write for too long.
        """
        if self._snapshot.contexts is not None:
            self._snapshot.contexts.close()
            self._snapshot.connection = None
        with self._wait_for_turn(), self._connect({"spanlab_writes": True}) as connection:
            yield connection

    def compact(self) -> bool:
        """Write an SQLite file anew, without the rows that are gone, which stay in it otherwise.

        Returns:
            Whether nothing is left of them: not on PostgreSQL, whose own vacuum frees them later,
            nor while others read an older state.
        """
        if not self.is_sqlite:
            return False
        with (
            self._wait_for_turn(),
            self._refusals_in_words(),
            closing(self.engine.raw_connection()) as connection,
        ):
            connection.cursor().execute("VACUUM")
            is_busy, *_ = connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    def is_away(self) -> bool:
        """Say whether there is a PostgreSQL server that does not answer now, or not yet."""
        if self.is_sqlite:
            return False
        from psycopg import conninfo, pq

        _, options = self.engine.dialect.create_connect_args(self.engine.url)
        options.pop("context", None)  # of SQLAlchemy's own
        ping = pq.PGconn.ping(conninfo.make_conninfo("", **options).encode())
        return ping in {pq.Ping.REJECT, pq.Ping.NO_RESPONSE}

    def close(self) -> None:
        """Close all connections; those in use, once they are given back."""
        pool = self.engine.pool
        self.engine.dispose()  # which makes another pool
        event.listen(pool, "checkin", _close_late)

    @contextmanager
    def _wait_for_turn(self) -> Iterator[None]:
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
    def _connect(self, options: dict[str, Any]) -> Iterator[Connection]:
        with self._refusals_in_words(), self.engine.connect() as connection:
            connection.execution_options(**options)
            with connection.begin():
                yield connection

    @contextmanager
    def _refusals_in_words(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise StoreError(f"the database {self}: {in_words(error, self.path)}") from error

    def __str__(self) -> str:
        return shown(self.url)


def _check_stored(url: URL) -> URL:
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise UsageError("an SQLite database in memory forgets everything: name a file")
    return url


def _close_late(connection: DBAPIConnection | None, _entry: ConnectionPoolEntry) -> None:
    # A thread may read on while its store is closed: its pool is nobody's any more by then.
    if connection is not None:
        connection.close()


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
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing(connection) else "BEGIN")


def is_writing(connection: Connection) -> bool:
    """Say whether a connection is one of ``Database.writing``."""
    return bool(connection.get_execution_options().get("spanlab_writes"))


def learn_sizes(connection: Connection) -> None:
    """Let PostgreSQL count what has just come: without, it plans as if tables were empty.

    By itself it does so up to a minute later, and a search takes n² steps until then.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE items, annotations, queue_values, item_search"))


def look_up_once(connection: Connection, key: Hashable, look_up: Callable[[], _T]) -> _T:
    """Return what ``look_up`` returns; while a connection reads, it is called once for each key."""
    looked_up = connection.get_execution_options().get(_FOUND)
    if looked_up is None:
        return look_up()
    if key not in looked_up:
        looked_up[key] = look_up()
    return cast("_T", looked_up[key])


def _postgresql(url: URL) -> Engine:
    try:
        return create_engine(watchful(url), pool_size=8, max_overflow=24, pool_pre_ping=True)
    except ArgumentError as error:
        raise UsageError(f"the database URL {shown(url)}: {error}") from error
    except ImportError as error:
        raise UsageError(
            f"PostgreSQL needs the driver psycopg: pip install 'spanlab[postgres]' ({error})"
        ) from error


FULL = (
    "the disk is full; this change is not stored, everything stored before it is kept: free some "
    "space and do it again"
)
_LOCKED = "another program keeps it locked; do it again once that has ended"
_PAGE = 65_536  # bytes: SQLite cannot extend its files with less
_PG_FULL = "53100"  # PostgreSQL's disk_full


def in_words(error: Exception, file: Path | None = None) -> str:
    """Return why a database refused.

    Args:
        error: of the database's driver, or SQLAlchemy's around it.
        file: the SQLite file; None for PostgreSQL.
    """
    cause = getattr(error, "orig", None) or error
    if _code(cause) == sqlite3.SQLITE_FULL or getattr(cause, "sqlstate", None) == _PG_FULL:
        return FULL
    if is_lock(cause):
        return _LOCKED
    unwritable = file is not None and not os.access(file.parent, os.W_OK)
    code = _code(cause)
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and unwritable):
        return _READ_ONLY
    # SQLite calls it an I/O error where it cannot extend the files beside the database.
    maybe_full = isinstance(cause, sqlite3.OperationalError | OSError)
    return FULL if maybe_full and file is not None and is_full(file) else str(cause).strip()


def is_lock(error: BaseException) -> bool:
    """Say whether SQLite refused because somebody else holds a lock, and for no other reason."""
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: BaseException) -> int:
    """Return SQLite's primary result code; 0 for what is no error of SQLite's."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def is_full(file: Path) -> bool:
    """Say whether the disk is full on which a file is, or would be."""
    folder = next(parent for parent in file.absolute().parents if parent.exists())
    return shutil.disk_usage(folder).free < _PAGE


_INSERT: dict[str, Callable[[Table], Any]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


def insert_new(connection: Connection, table: Table) -> Insert:
    """Return an insert into ``table`` that leaves rows alone whose key is there already."""
    return cast("Insert", _INSERT[connection.dialect.name](table).on_conflict_do_nothing())


def insert_or_replace(connection: Connection, table: Table) -> Insert:
    """Return an insert into ``table`` that overwrites the row that has the same primary key."""
    return _insert_or_replace(connection.dialect.name, table)


@cache  # what SQLAlchemy makes of it takes longer than to write a row
def _insert_or_replace(dialect: str, table: Table) -> Insert:
    statement = _INSERT[dialect](table)
    new_values = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
    keys = list(table.primary_key.columns)
    return cast("Insert", statement.on_conflict_do_update(index_elements=keys, set_=new_values))


def insert_rows(
    connection: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert many rows as fast as the database takes them: SQLite's own loop, PostgreSQL's COPY.

    Args:
        connection: in a transaction that may write.
        table: the table's name.
        columns: names of its columns.
        rows: plain values, as many and in the same order as the columns.

    Raises:
        sqlalchemy.exc.DBAPIError: the database refuses.
    """
    if not rows:
        return
    names = ", ".join(columns)
    if connection.dialect.name == "sqlite":
        # Many rows in a statement: SQLite lets go of Python's lock for each, and others compute.
        place = f"({', '.join('?' * len(columns))})"
        for start in range(0, len(rows), _AT_ONCE):
            batch = rows[start : start + _AT_ONCE]
            places = ", ".join([place] * len(batch))
            sql = f"INSERT INTO {table} ({names}) VALUES {places}"  # noqa: S608 - our own names
            connection.exec_driver_sql(sql, tuple(chain.from_iterable(batch)))
        return
    driver: Any = connection.connection.driver_connection
    sql = f"COPY {table} ({names}) FROM STDIN"
    try:
        with driver.cursor() as cursor, cursor.copy(sql) as copy:
            for row in rows:
                copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as error:
        raise DBAPIError(sql, None, error) from error


_POSTGRESQL = {"postgres", "postgresql", "postgresql+psycopg"}
_SQLITE = {"sqlite", "sqlite+pysqlite"}
_KINDS = "sqlite:///file.db or postgresql://user:password@host:5432/name"
_HOSTS = "several hosts are given as postgresql://user:password@/name?host=one:5432&host=two:5432"
_MARKS = frozenset(":@=?")  # what may stand before or after a password
_CLIENT = {
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "connect_timeout": "10",
}
_SERVER = (
    "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 "
    "-c tcp_user_timeout=10000"
)


def database_url(text: str) -> URL:
    """Return the URL of an SQLite or PostgreSQL database, with its password where it is hidden.

    SQLAlchemy hides the password before the host, and not one among the options after it.

    Raises:
        UsageError: it is no such URL. The message repeats nothing that may be a password: in a
            text that cannot be read, that may be any part.
    """
    try:
        url = make_url(text)
    except ArgumentError:
        shown_text = "a text that may hold a password" if set(text) & _MARKS else repr(text)
        raise UsageError(f"{shown_text} is not a database URL: {_KINDS}") from None
    except ValueError:  # repeats what stands where the port would be
        raise UsageError(f"the port in the database URL is not a number; {_HOSTS}") from None
    if (passwords := url.query.get("password")) is not None:
        password = passwords if isinstance(passwords, str) else passwords[-1]
        url = url.difference_update_query(["password"]).set(password=password)
    _check(url)
    return url if url.drivername in _SQLITE else url.set(drivername="postgresql+psycopg")


def shown(url: URL) -> str:
    """Return a URL for messages: without its password and its options."""
    return url.set(query={}).render_as_string(hide_password=True)


def _check(url: URL) -> None:
    if url.drivername not in _SQLITE | _POSTGRESQL:
        raise UsageError(f"no database of the kind {url.drivername!r}: {_KINDS}")
    if url.drivername in _SQLITE and (url.host or url.username or url.password):
        raise UsageError(
            "an SQLite database is a file, without host, user and password: "
            "sqlite:///file.db below the current directory, or sqlite:////path/file.db"
        )
    if "@" in (url.host or ""):
        raise UsageError("the database URL has a second @: in a password it is written as %40")
    if "," in (url.host or ""):
        raise UsageError(f"the database URL names several hosts; {_HOSTS}")


def watchful(url: URL) -> URL:
    """Return a PostgreSQL URL whose connections are watched from both ends.

    Time limits and options that the URL has itself stay.
    """
    own = dict(url.query)
    options = own.pop("options", "")
    own_options = options if isinstance(options, str) else " ".join(options)
    return url.update_query_dict({**_CLIENT, **own, "options": f"{_SERVER} {own_options}".strip()})

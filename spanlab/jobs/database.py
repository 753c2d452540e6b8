"""Where jobs are kept: DBOS's tables in an SQLite file, or in PostgreSQL under a schema of ours."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.pool import NullPool

from spanlab.base.errors import StoreError
from spanlab.base.settings import Settings
from spanlab.storage.engine import FULL, database_url, in_words, is_full, watchful
from spanlab.storage.upgrade import open_database

if TYPE_CHECKING:
    from pathlib import Path

    from dbos import DBOSClient, DBOSConfig

APPLICATION = "spanlab"
SCHEMA = "spanlab_jobs"

# Changes only when the steps of a workflow do: jobs queued by one spanlab run under the next.
VERSION = "spanlab-jobs-1"

NOT_JSON = (
    "this job is stored as a Python pickle, not as JSON; earlier versions of spanlab wrote such "
    "rows, but reading one runs the code in it, so it is never opened: start the job again"
)


def is_sqlite(settings: Settings) -> bool:
    """Say whether jobs are kept in a file of this machine."""
    return database_url(settings.database_url).get_backend_name() == "sqlite"


def file_of(settings: Settings) -> Path:
    """Return the SQLite file for jobs, which may not exist yet."""
    return settings.home / "jobs.db"


def url_of(settings: Settings) -> str:
    """Return the SQLAlchemy URL of the jobs' database."""
    if is_sqlite(settings):
        return f"sqlite:///{file_of(settings)}"
    url = database_url(settings.database_url).set(drivername="postgresql")
    return watchful(url).render_as_string(hide_password=False)


def exists(settings: Settings) -> bool:
    """Say whether there can be any job at all; costs next to nothing where there is none."""
    return not is_sqlite(settings) or file_of(settings).exists()


def prepare(settings: Settings) -> None:
    """Make the tables, or bring them up to date.

    Raises:
        StoreError: the database cannot be reached or written, or is one of a newer spanlab.
    """
    from dbos import DBOS

    open_database(settings).close()  # which waits for a server that is away
    _set_up_dbos()
    try:
        if is_sqlite(settings):
            settings.home.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(file_of(settings), timeout=30)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")  # stays with the file
        DBOS.migrate(url_of(settings), schema=SCHEMA)
    except Exception as error:
        raise refusal(settings, error) from error


def refusal(settings: Settings, error: Exception) -> StoreError:
    """Return what to raise where the jobs' database refuses."""
    file = file_of(settings) if is_sqlite(settings) else None
    return StoreError(f"the jobs' database: {in_words(error, file)}")


def check_space(settings: Settings) -> None:
    """Check that jobs can go on: DBOS tries for ever, and silently, to write to a full disk.

    Raises:
        StoreError: the disk is full.
    """
    if is_sqlite(settings) and is_full(file_of(settings)):
        raise StoreError(f"jobs cannot go on: {FULL}")


def client(settings: Settings) -> DBOSClient:
    """Connect to the jobs' database without working on anything."""
    from dbos import DBOSClient, DBOSPortableJSONSerializer

    _set_up_dbos()
    return DBOSClient(
        system_database_url=url_of(settings),
        serializer=DBOSPortableJSONSerializer(),
        dbos_system_schema=SCHEMA,
        application_name=APPLICATION,
        retry_connection_errors=False,
    )


def alone(settings: Settings) -> Connection:
    """Return a connection to PostgreSQL that nobody else uses, each statement its transaction."""
    url = database_url(settings.database_url)
    engine = create_engine(watchful(url), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    return engine.connect()


@contextmanager
def connection(settings: Settings) -> Iterator[Connection]:
    """Give a transaction in the jobs' database, on a connection that is kept for the next one."""
    with _ENGINES_LOCK:
        engine = _ENGINES.get(url_of(settings))
        if engine is None:
            url = make_url(url_of(settings))
            url = url if is_sqlite(settings) else url.set(drivername="postgresql+psycopg")
            _lend_clock()
            engine = _ENGINES[url_of(settings)] = create_engine(url, pool_pre_ping=True)
    with engine.begin() as opened:
        yield opened


_ENGINES: dict[str, Engine] = {}
_ENGINES_LOCK = Lock()


def config(settings: Settings, executor: str) -> DBOSConfig:
    """Return DBOS's configuration for a worker of this name."""
    from dbos import DBOSPortableJSONSerializer

    _set_up_dbos()
    return {
        "name": APPLICATION,
        "serializer": DBOSPortableJSONSerializer(),
        "system_database_url": url_of(settings),
        "dbos_system_schema": SCHEMA,
        "application_version": VERSION,
        "executor_id": executor,
        "use_listen_notify": False,  # polled alike on SQLite, PostgreSQL and through poolers
        "log_level": "WARNING",
        "run_migrations": False,
        # A stop waits for it; it asks the database only for who waits for messages, here nobody.
        "notification_listener_polling_interval_sec": 0.25,
    }


def _set_up_dbos() -> None:
    """Have DBOS refuse pickles, find a clock in SQLite, and keep its log off the console.

    Reading a pickle runs what is in it. A serializer of ours is not enough: DBOS (3.4.0) reads each
    value as its row says, and a row can always say ``py_pickle``. All its reading of pickles is in
    that one method. Without a handler of ours DBOS would install one that prints.
    """
    from dbos._serialization import DefaultSerializer

    # DBOS has no setting for it; that its reader of pickles is replaced is what the types refuse.
    DefaultSerializer.deserialize = _refuse_pickle  # type: ignore[method-assign, assignment]  # as said above
    _lend_clock()
    logger = logging.getLogger("dbos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.propagate = False


def _lend_clock() -> None:
    """Give SQLite before 3.42 the clock that DBOS reads there under Python 3.12 and later.

    DBOS (3.4.0) asks Python's version where SQLite's counts: ``unixepoch('subsec')`` is NULL in an
    older one, such as Debian 12's, in queries, triggers and columns' defaults alike.
    """
    if sqlite3.sqlite_version_info < (3, 42) and not event.contains(Engine, "connect", _add_clock):
        event.listen(Engine, "connect", _add_clock)


def _add_clock(connection: object, record: object) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.create_function("unixepoch", 1, lambda unit: time.time())


def _refuse_pickle(serializer: object, serialized_data: str) -> Any:
    raise StoreError(NOT_JSON)

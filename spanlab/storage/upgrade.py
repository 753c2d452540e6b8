"""Brings a database to the newest revision when it is opened, after a backup of an SQLite file."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    inspect,
    text,
)

from spanlab.base.errors import StoreError
from spanlab.base.settings import Settings
from spanlab.storage.engine import BUSY_SECONDS, Database, shown
from spanlab.storage.tables import STATEMENTS, metadata

# Oldest first; one file each in migrations/versions.
REVISIONS = ("0016", "0021", "0022", "0023", "0024", "0025", "0026", "0027", "0028")
VERSION_TABLE = "spanlab_revision"
_SCRIPTS = Path(__file__).parent / "migrations"
_OLDEST_COMMIT = "75cc3f0"  # the last one that brings databases from before them up to date
_BETWEEN_COMMIT = "71fc086"  # the same for what was never released between them
_LOCK = 7_302_145_001  # a PostgreSQL advisory lock; any number that nobody else uses
_AWAY_SECONDS = 60.0  # how long a server that is away is waited for, such as one that restarts
_LOOK_SECONDS = 0.5  # between two looks whether it is back

log = logging.getLogger(__name__)


def open_database(settings: Settings) -> Database:
    """Open a database, making its directory if needed and bringing it to the newest revision.

    Raises:
        UsageError: the database URL is none, or its driver is not installed.
        StoreError: it is no database, one of a newer spanlab, emptied, or cannot be reached.
    """
    database = Database(settings.database_url)
    if database.path is not None:
        folder = database.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot make the directory {folder} for the database: {error}"
            ) from error
        _check_not_emptied(database.path, settings.home)
    try:
        upgrade(database, settings.home / "backups")
    except BaseException:
        database.close()
        raise
    return database


def upgrade(database: Database, backups: Path) -> Path | None:
    """Migrate ``database`` to the newest revision; cheap when it is there already.

    Two processes may do this at once: one migrates, the other waits and finds it done. A server
    that is away is waited for, up to a minute.

    Args:
        database: the database, empty or of an earlier revision.
        backups: directory for the copy of an SQLite file that has something to migrate.

    Returns:
        The backup's path; None if none was needed.

    Raises:
        StoreError: it was made by a newer spanlab, or one too old, or holds foreign tables under
            our names, or stays away.
    """
    deadline, is_told = monotonic() + _AWAY_SECONDS, False
    while True:
        try:
            return _upgrade_once(database, backups)
        except StoreError as error:
            if monotonic() >= deadline or not database.is_away():
                raise
            if not is_told:
                log.warning("%s; waiting for it, up to a minute", str(error).partition("\n")[0])
            is_told = True
            sleep(_LOOK_SECONDS)


def _upgrade_once(database: Database, backups: Path) -> Path | None:
    with database.reading() as connection:
        if _revision(connection) == REVISIONS[-1]:
            return None
    with database.writing() as connection:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        revision = _revision(connection)
        if revision == REVISIONS[-1]:
            return None
        if revision is None:
            create(connection)
            return None
        backup = None if database.path is None else _back_up(database.path, backups, revision)
        migrate(connection)
        return backup


def _check_not_emptied(path: Path, home: Path) -> None:
    if not path.exists() or path.stat().st_size or path.parent.absolute() != home.absolute():
        return
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as making:
        making.execute("BEGIN EXCLUSIVE")  # after a process that is about to make its tables
    beside = sorted(file.name for file in home.iterdir() if not file.name.startswith(path.name))
    if beside and not path.stat().st_size:
        raise StoreError(
            f"the database {path} is empty (0 bytes), but beside it lies {', '.join(beside[:5])}: "
            "something emptied it. Put a copy of it in its place (backups/ has those from before "
            "updates), or delete the empty file to start with a new one"
        )


def create(connection: Connection) -> None:
    """Make all tables in an empty database."""
    metadata.create_all(connection)
    for statement in STATEMENTS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
    name = Column("version_num", String(32), nullable=False)
    primary = PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc")
    versions = Table(VERSION_TABLE, MetaData(), name, primary)
    versions.create(connection)
    connection.execute(versions.insert().values(version_num=REVISIONS[-1]))


def migrate(connection: Connection) -> None:
    """Run Alembic up to the newest revision inside the transaction of ``connection``."""
    # Imported here: it costs 0.8 s, which opening any other database saves.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, REVISIONS[-1])


def _revision(connection: Connection) -> str | None:
    tables = set(inspect(connection).get_table_names())
    if VERSION_TABLE not in tables:
        foreign = sorted(tables & set(metadata.tables))
        if foreign:
            raise StoreError(
                f"the database {shown(connection.engine.url)} has a table {foreign[0]!r} that is "
                "not spanlab's: choose another database"
            )
        return None
    query = text(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 - our own name
    revision = connection.execute(query).scalar()
    if revision is None or revision in REVISIONS:
        return None if revision is None else str(revision)
    if revision < REVISIONS[-1]:
        commit = _OLDEST_COMMIT if revision < REVISIONS[0] else _BETWEEN_COMMIT
        raise StoreError(
            f"the database {shown(connection.engine.url)} has revision {revision}, and this "
            f"spanlab knows {' and '.join(REVISIONS)}: open it once with the commit {commit} of "
            "spanlab, then with this one"
        )
    raise StoreError(
        f"the database {shown(connection.engine.url)} has revision {revision}, this spanlab "
        f"knows {REVISIONS[-1]} at most: it was made by a newer spanlab; update this one"
    )


def _back_up(path: Path, backups: Path, revision: str) -> Path:
    # SQLite's own backup call reads a consistent state; a plain copy of a live file would not.
    backups.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    target = backups / f"{path.stem}-{revision}-{now}.db"
    unfinished = target.with_suffix(".partial")
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(unfinished)) as copy:
            source.backup(copy)
    except BaseException:  # such as a full disk, of which it is no more a part then
        unfinished.unlink(missing_ok=True)
        raise
    return unfinished.rename(target)

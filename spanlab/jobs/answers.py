"""Paid answers reach other hosts: what one was answered, no other one pays for.

Answers are cached on the disk of the host that asked. With PostgreSQL, where workers may be on any
hosts, each one also copies its new answers to the jobs' database, some hundredths of a second
after they came: no call waits for that. A question that a host's own cache cannot answer is looked
up there before it is paid for. What a host was answered after it last reached the database cannot
be known to anybody else.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from spanlab.errors import StoreError
from spanlab.jobs import database
from spanlab.lm.cache import cache_in, read

if TYPE_CHECKING:
    from spanlab.settings import Settings

_CACHES = ("models", "retrieval")  # folders of answers that cost money or time
_SOON = 0.02  # seconds between two looks for new answers while they come, and
_IDLE = 0.25  # while none do
_AWAY = 1.0  # and while the database does not answer
_MOST = 500  # answers copied or looked up at once
_AGAIN = 500  # of the last answers before a worker began, which it may not have copied before
_KEPT_DAYS = 30
_LOCK = 730_217  # PostgreSQL's advisory lock for making the table
_TABLE = f"{database.SCHEMA}.answers"
_MAKE = f"""
    CREATE TABLE IF NOT EXISTS {_TABLE} (
        cache TEXT NOT NULL,
        key TEXT NOT NULL,
        answer TEXT NOT NULL,
        at TIMESTAMPTZ NOT NULL DEFAULT now(),
        PRIMARY KEY (cache, key)
    )
"""
_INSERT = text(
    f"INSERT INTO {_TABLE} (cache, key, answer) SELECT :cache, key, answer FROM "
    "unnest(CAST(:keys AS text[]), CAST(:answers AS text[])) AS new (key, answer) "
    "ON CONFLICT DO NOTHING"
)
_DELETE = text(f"DELETE FROM {_TABLE} WHERE cache = :cache AND key = ANY(:keys)")
_FIND = text(
    f"SELECT cache, key, answer FROM {_TABLE} JOIN "
    "unnest(CAST(:caches AS text[]), CAST(:keys AS text[])) AS asked (cache, key) "
    "USING (cache, key)"
)

Answer = dict[str, object]
Found = Future[Answer | None]

log = logging.getLogger(__name__)


class Answers:
    """The answers of one worker's host, copied to the jobs' database and looked up there.

    Args:
        settings: a PostgreSQL database, and the home with the host's own caches.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folders = {name: settings.home / "cache" / name for name in _CACHES}
        self._tails: list[_Tail] = []
        self._finder = _Finder(settings)
        self._shelves = [_Shelf(name, self._finder) for name in _CACHES]
        self._over = threading.Event()
        self._copier = threading.Thread(target=self._copy, name="spanlab-answers", daemon=True)

    def start(self) -> None:
        """Begin to copy what comes, and to look up what is asked for.

        Raises:
            StoreError: the database cannot be reached.
        """
        try:
            with database.connection(self._settings) as connection:
                # IF NOT EXISTS alone does not keep two workers from making it at the same time.
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                connection.execute(text(_MAKE))
                old = f"DELETE FROM {_TABLE} WHERE at < now() - interval '{_KEPT_DAYS} days'"
                connection.execute(text(old))
        except SQLAlchemyError as error:
            raise _trouble(error) from error
        self._tails = [_Tail(name, path / "answers.db") for name, path in self._folders.items()]
        for shelf in self._shelves:
            cache_in(self._folders[shelf.name]).elsewhere = shelf
        self._finder.start()
        self._copier.start()

    def stop(self) -> None:
        """Copy what is left, and end; a database that does not answer is not waited for long."""
        for shelf in self._shelves:
            cache_in(self._folders[shelf.name]).elsewhere = None
        self._finder.stop()
        self._over.set()
        self._copier.join(2 * _AWAY)

    def _copy(self) -> None:
        pause, connection = _IDLE, None
        while True:
            last, copied = self._over.is_set(), 0
            try:
                connection = connection or database.alone(self._settings)
                for shelf in self._shelves:
                    shelf.drop_forgotten(connection)
                copied = sum(_copy_new(tail, connection) for tail in self._tails)
            except (SQLAlchemyError, sqlite3.Error) as error:
                if connection is not None:
                    connection.invalidate()
                    connection = None
                log.warning("answers are not copied for now: %s", str(error).partition("\n")[0])
                pause = _AWAY
            else:
                pause = _SOON if copied else min(pause * 1.3, _IDLE)
            if last and not copied:
                break
            self._over.wait(pause)
        if connection is not None:
            connection.close()


class _Finder:
    """Looks answers up in the jobs' database: a thread asks for all that is wanted at once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._over = False
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="spanlab-finder", daemon=True)

    def start(self) -> None:
        """Begin to look up."""
        self._thread.start()

    def stop(self) -> None:
        """Look up what was asked until now, and nothing more."""
        with self._lock:
            self._over = True
            self._asked.put(None)

    def find(self, cache: str, key: str) -> Found:
        """Look an answer up; none is found while the database does not answer."""
        answer: Found = Future()
        with self._lock:
            if not self._over:
                self._asked.put(_Asked(cache, key, answer))
                return answer
        answer.set_result(None)
        return answer

    def _run(self) -> None:
        while (first := self._asked.get()) is not None:
            batch = [first]
            while len(batch) < _MOST and not self._asked.empty():
                more = self._asked.get()
                if more is None:
                    self._asked.put(None)
                    break
                batch.append(more)
            found = self._look_up(batch)
            for asked in batch:
                if asked.answer.set_running_or_notify_cancel():
                    asked.answer.set_result(found.get((asked.cache, asked.key)))
        if self._connection is not None:
            self._connection.close()

    def _look_up(self, batch: Sequence[_Asked]) -> dict[tuple[str, str], Answer | None]:
        wanted = {
            "caches": [asked.cache for asked in batch],
            "keys": [asked.key for asked in batch],
        }
        try:
            if self._connection is None:
                self._connection = database.alone(self._settings)
            rows = self._connection.execute(_FIND, wanted).all()
        except SQLAlchemyError as error:
            if self._connection is not None:
                self._connection.invalidate()
                self._connection = None
            log.warning("answers are not looked up for now: %s", str(error).partition("\n")[0])
            return {}
        return {(row.cache, row.key): read(row.answer) for row in rows}


class _Shelf:
    """One cache's answers in the jobs' database; see ``Elsewhere``."""

    def __init__(self, name: str, finder: _Finder) -> None:
        self.name = name
        self._finder = finder
        self._forgotten: deque[str] = deque()

    def find(self, key: str) -> Found:
        """Look an answer up that was not forgotten."""
        if key in self._forgotten:
            nothing: Found = Future()
            nothing.set_result(None)
            return nothing
        return self._finder.find(self.name, key)

    def forget(self, key: str) -> None:
        """Let the answer be dropped, soon."""
        self._forgotten.append(key)

    def drop_forgotten(self, connection: Connection) -> None:
        """Drop what was forgotten, before newer answers to the same are copied."""
        keys = list(self._forgotten)
        if keys:
            connection.execute(_DELETE, {"cache": self.name, "keys": keys})
            for _ in keys:
                self._forgotten.popleft()


class _Asked(NamedTuple):
    cache: str
    key: str
    answer: Found


def _copy_new(tail: _Tail, connection: Connection) -> int:
    new = tail.look()
    if new:
        given = {"keys": [row.key for row in new], "answers": [row.answer for row in new]}
        connection.execute(_INSERT, {"cache": tail.name, **given})
        tail.seen(new)
    return len(new)


class _Row(NamedTuple):
    number: int
    key: str
    answer: str


class _Tail:
    """What is new in a cache of answers, whichever process of this host has put it there.

    SQLite numbers rows in the order of their coming, but gives the number of the last one away
    again when that is deleted; so the last few are looked at again, and known by their keys.
    """

    _LAST = 32

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path
        self._cache: sqlite3.Connection | None = None
        self._known: dict[int, str] = {}
        self._after = 0
        with suppress(sqlite3.Error):  # whoever asks for an answer in it will say more
            self._after = max(0, self._newest() - _AGAIN)

    def look(self) -> list[_Row]:
        """Return the answers that ``seen`` was not told of, at most some hundreds."""
        self._after = min(self._after, self._newest())
        if self._cache is None:
            return []
        rows = self._cache.execute(
            "SELECT rowid, key, answer FROM answers WHERE rowid > ? ORDER BY rowid LIMIT ?",
            (self._after - self._LAST, _MOST),
        )
        return [row for row in map(_Row._make, rows) if self._known.get(row.number) != row.key]

    def _newest(self) -> int:
        if self._cache is None:
            if not self._path.exists():
                return 0
            place = f"file:{quote(str(self._path))}?mode=ro"
            self._cache = sqlite3.connect(place, uri=True, check_same_thread=False)
        newest = self._cache.execute("SELECT coalesce(max(rowid), 0) FROM answers").fetchone()
        return int(newest[0])

    def seen(self, rows: list[_Row]) -> None:
        """Note that these are known elsewhere by now."""
        self._after = max(self._after, *(row.number for row in rows))
        kept = {n: key for n, key in self._known.items() if n > self._after - self._LAST}
        self._known = kept | {row.number: row.key for row in rows[-self._LAST :]}


def _trouble(error: SQLAlchemyError) -> StoreError:
    return StoreError(f"the jobs' database: {str(error).strip()}")

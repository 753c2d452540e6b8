"""Paid answers reach other hosts: who takes up a job's work knows what was answered before.

Answers are cached on the disk of the host that asked. With PostgreSQL, where workers may be on any
hosts, each one also copies its new answers to the jobs' database, some hundredths of a second
after they came: no call waits for that. Who takes up work that another worker had begun fetches
what was answered since it was begun. What a host was answered after it last reached the database
cannot be known to anybody else.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from spanlab.errors import StoreError
from spanlab.jobs import database
from spanlab.lm.cache import cache_in

if TYPE_CHECKING:
    from spanlab.jobs.board import Board
    from spanlab.settings import Settings

_CACHES = ("models", "retrieval")  # folders of answers that cost money or time
_SOON = 0.02  # seconds between two looks for new answers while they come, and
_IDLE = 0.25  # while none do
_AWAY = 1.0  # and while the database does not answer
_MOST = 500  # answers copied or fetched at once
_AGAIN = 500  # of the last answers before a worker began, which it may not have copied before
_KEPT_DAYS = 30
_LOCK = 730_217  # PostgreSQL's advisory lock for making the table
_TABLE = f"{database.SCHEMA}.answers"
_MAKE = f"""
    CREATE TABLE IF NOT EXISTS {_TABLE} (
        number BIGSERIAL PRIMARY KEY,
        cache TEXT NOT NULL,
        key TEXT NOT NULL,
        answer TEXT NOT NULL,
        at TIMESTAMPTZ NOT NULL DEFAULT now(),
        UNIQUE (cache, key)
    )
"""

_INSERT = text(
    f"INSERT INTO {_TABLE} (cache, key, answer) SELECT :cache, key, answer FROM "
    "unnest(CAST(:keys AS text[]), CAST(:answers AS text[])) AS new (key, answer) "
    "ON CONFLICT DO NOTHING"
)

log = logging.getLogger(__name__)


class Answers:
    """The answers of one worker's host, copied to and from the jobs' database.

    Args:
        settings: a PostgreSQL database, and the home with the host's own caches.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._me = token_hex(4)
        self._caches = {name: settings.home / "cache" / name for name in _CACHES}
        self._tails: list[_Tail] = []
        self._over = threading.Event()
        self._copier = threading.Thread(target=self._copy, name="spanlab-answers", daemon=True)

    def start(self) -> None:
        """Begin to copy what comes.

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
        self._tails = [_Tail(name, path / "answers.db") for name, path in self._caches.items()]
        self._copier.start()

    def stop(self) -> None:
        """Copy what is left, and end; a database that does not answer is not waited for long."""
        self._over.set()
        self._copier.join(2 * _AWAY)

    def take_up(self, board: Board, workflow_id: str, said: Mapping[str, Any]) -> None:
        """Fetch the answers to what another worker has begun, and note that this one is at it.

        Args:
            board: the jobs.
            workflow_id: a job or a part.
            said: its attributes.

        Raises:
            StoreError: a database or the cache refuses.
        """
        begun = said.get("begun")
        if begun is not None and begun["by"] == self._me:
            return
        since = self._newest() if begun is None else begun["since"]
        if begun is not None:
            self._fetch(since)
        board.say(workflow_id, begun={"since": since, "by": self._me})

    def _newest(self) -> int:
        try:
            with database.connection(self._settings) as connection:
                newest = text(f"SELECT coalesce(max(number), 0) FROM {_TABLE}")
                return int(connection.execute(newest).scalar_one())
        except SQLAlchemyError as error:
            raise _trouble(error) from error

    def _fetch(self, since: int) -> None:
        chosen = text(
            f"SELECT number, cache, key, answer FROM {_TABLE} WHERE number > :since "
            f"ORDER BY number LIMIT {_MOST}"
        )
        while True:
            try:
                with database.connection(self._settings) as connection:
                    rows = connection.execute(chosen, {"since": since}).all()
            except SQLAlchemyError as error:
                raise _trouble(error) from error
            caches = {row.cache: cache_in(self._caches[row.cache]) for row in rows}
            stored = [
                caches[row.cache].put(row.key, json.loads(row.answer))
                for row in rows
                if caches[row.cache].get(row.key) is None
            ]
            for each in stored:
                each.result()
            if len(rows) < _MOST:
                return
            since = rows[-1].number

    def _copy(self) -> None:
        pause, connection = _IDLE, None
        while True:
            last, copied = self._over.is_set(), 0
            try:
                connection = connection or database.alone(self._settings)
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

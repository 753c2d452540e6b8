"""Answers that cost money or time, kept so that none is paid for twice.

With an SQLite database they lie in files beside it, ``<home>/cache/models/answers.db`` and
``<home>/cache/retrieval/answers.db``, which any number of processes of one machine may share; with
PostgreSQL they are a table there, which all workers share and in which they expire after 30 days.
An answer that ``put`` has returned for survives the end of the process, however it ends.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from spanlab.errors import StoreError
from spanlab.fields import storable
from spanlab.settings import Settings
from spanlab.single_flight import SingleFlight

Answer = dict[str, object]

_BUSY_SECONDS = 30.0  # that a write waits for those of other processes


class AnswerCache(ABC):
    """Answers by key; open one with ``answer_cache``.

    ``single_flight`` knows what is being asked at this moment, to be stored here.
    """

    def __init__(self) -> None:
        self.single_flight: SingleFlight[Any] = SingleFlight()

    async def get(self, key: str) -> Answer | None:
        """Return the answer under a key; None without one, or if it is no JSON object.

        Raises:
            StoreError: the cache cannot be read.
        """
        text = await self._get(key)
        try:
            answer = None if text is None else storable(json.loads(text))
        except ValueError:
            return None
        return answer if isinstance(answer, dict) else None

    async def put(self, key: str, answer: Answer) -> None:
        """Store an answer; it is stored also if the waiting for it is cancelled.

        Raises:
            StoreError: the cache cannot be written.
        """
        # Escapes alone: models do send half an emoji, which no database takes as text.
        await asyncio.shield(self._put(key, json.dumps(answer)))

    @abstractmethod
    async def forget(self, key: str) -> None:
        """Drop an answer, if there is one.

        Raises:
            StoreError: the cache cannot be written.
        """

    @abstractmethod
    async def _get(self, key: str) -> str | None: ...

    @abstractmethod
    async def _put(self, key: str, text: str) -> None: ...


class AnswerFile(AnswerCache):
    """The cache in one directory, as an SQLite file.

    Args:
        folder: the directory, which is made if it is not there.

    Raises:
        StoreError: it cannot be written, or what lies there is not a cache.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._path = folder / "answers.db"
        self._reads, self._writes = threading.Lock(), threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._reading, self._writing = self._connect(), self._connect()
        except (OSError, sqlite3.Error) as error:
            raise self._trouble(error) from error

    async def forget(self, key: str) -> None:
        """Drop an answer, if there is one."""
        await asyncio.to_thread(self._write, "DELETE FROM answers WHERE key = ?", key)

    async def _get(self, key: str) -> str | None:
        try:
            with self._reads:  # here and now: it takes less than a thread would
                query = "SELECT answer FROM answers WHERE key = ?"
                row = self._reading.execute(query, (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        return None if row is None else str(row[0])

    async def _put(self, key: str, text: str) -> None:
        # In a thread, since others may be writing. Many answers in one transaction were measured
        # and save 0.03 ms of processor time an answer: nothing beside a call.
        insertion = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)"
        await asyncio.to_thread(self._write, insertion, key, text, time.time())

    def _write(self, statement: str, *values: object) -> None:
        with self._writes:
            try:
                self._writing.execute(statement, values)
            except sqlite3.Error as error:
                raise self._trouble(error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS answers "
            "(key TEXT PRIMARY KEY, answer TEXT NOT NULL, at REAL)"
        )
        return connection

    def _trouble(self, error: Exception) -> StoreError:
        return StoreError(
            f"the cache of answers at {self._path} cannot be used: {error}; "
            "move the file away to begin a new one"
        )


def answer_cache(settings: Settings, name: Literal["models", "retrieval"]) -> AnswerCache:
    """Return this process's one cache of a name, beside the database or in it.

    Args:
        settings: which database, and the home.
        name: whose answers.

    Raises:
        StoreError: it cannot be used.
    """
    if settings.database_url.startswith("sqlite"):
        return answer_file(settings.home / "cache" / name)
    from spanlab.lm.cache_table import AnswerTable

    with _opening:
        return _opened(AnswerTable, settings, name)


def answer_file(folder: Path) -> AnswerCache:
    """Return this process's one cache of a directory; see ``AnswerFile``."""
    with _opening:
        return _opened(AnswerFile, folder.resolve())


@cache
def _opened(kind: Callable[..., AnswerCache], *place: object) -> AnswerCache:
    """Open one for each place: who asks the same at the same time has to meet there."""
    return kind(*place)


_opening = threading.Lock()  # two threads that open one at the same time get the same

"""Answers of language models on disk, so that no question is paid for twice.

One SQLite file in WAL mode, JSON in it and nothing that runs when it is read. An answer is in the
file before ``put`` returns: it survives the end of this process, however it ends (a power cut may
cost the last moments' answers, which are then asked for again). Any number of processes on one
machine may share the file.
"""

from __future__ import annotations

import json
import os
import queue
import sqlite3
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from spanlab.errors import StoreError
from spanlab.flights import Flights

if TYPE_CHECKING:
    from dspy.lm15 import Response

_FILE = "answers.db"
_BUSY_SECONDS = 30.0
_BATCH = 256  # answers that one transaction takes at most
_TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL, at REAL)"


class _Write(NamedTuple):
    key: str
    answer: str | None  # None: forget
    done: Future[None]


def read(entry: str) -> dict[str, object] | None:
    """Return the answer that an entry of a cache holds; None if it is no JSON object."""
    try:
        answer = json.loads(entry)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


class Elsewhere(Protocol):
    """What the caches of other machines hold."""

    def find(self, key: str) -> Future[dict[str, object] | None]:
        """Return an answer that another machine paid for, or None; never an error."""

    def forget(self, key: str) -> None:
        """Drop an answer that cannot be used."""


class AnswerCache:
    """The cache of one directory; make one through ``cache_in``."""

    elsewhere: Elsewhere | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / _FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._reading = self._connect()
            self._writing = self._connect()
        except (OSError, sqlite3.Error) as error:
            raise self._trouble(error) from error
        self._lock = threading.Lock()
        self._writes: queue.SimpleQueue[_Write] = queue.SimpleQueue()
        self.flights: Flights[Response] = Flights()  # what is being asked, to be stored here
        threading.Thread(target=self._write_all, name="answer-cache", daemon=True).start()

    def get(self, key: str) -> dict[str, object] | None:
        """Return the answer under a key, or None; an entry that is not JSON counts as absent."""
        with self._lock:
            try:
                row = self._reading.execute(
                    "SELECT answer FROM answers WHERE key = ?", (key,)
                ).fetchone()
            except sqlite3.Error as error:
                raise self._trouble(error) from error
        return None if row is None else read(row[0])

    def seek(self, key: str) -> Future[dict[str, object] | None] | None:
        """Look for an answer that ``get`` did not find; None if there is nowhere else to look."""
        return None if self.elsewhere is None else self.elsewhere.find(key)

    def put(self, key: str, answer: dict[str, object]) -> Future[None]:
        """Store an answer; it is on disk when the future is done."""
        # Escapes alone: models do send half an emoji, which no database takes as text.
        return self._queue(key, json.dumps(answer))

    def forget(self, key: str) -> Future[None]:
        """Drop an answer; it is gone when the future is done."""
        done, elsewhere = self._queue(key, None), self.elsewhere
        if elsewhere is not None:
            done.add_done_callback(lambda _: elsewhere.forget(key))
        return done

    def _queue(self, key: str, answer: str | None) -> Future[None]:
        write = _Write(key, answer, Future())
        write.done.set_running_or_notify_cancel()  # a task that is cancelled does not cancel it
        self._writes.put(write)
        return write.done

    def _write_all(self) -> None:
        while True:
            batch = [self._writes.get()]
            while len(batch) < _BATCH and not self._writes.empty():
                batch.append(self._writes.get())
            error: StoreError | None = None
            try:
                self._write(batch)
            except sqlite3.Error as raised:
                error = self._trouble(raised)
            for write in batch:
                if error is None:
                    write.done.set_result(None)
                else:
                    write.done.set_exception(error)

    def _write(self, batch: list[_Write]) -> None:
        now = time.time()
        with self._writing:
            self._writing.execute("BEGIN IMMEDIATE")
            for write in batch:
                if write.answer is None:
                    self._writing.execute("DELETE FROM answers WHERE key = ?", (write.key,))
                else:
                    self._writing.execute(
                        "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)",
                        (write.key, write.answer, now),
                    )

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(_TABLE)
        return connection

    def _trouble(self, error: Exception) -> StoreError:
        return StoreError(
            f"the cache of model answers at {self._path} cannot be used: {error}; "
            "move the file away to begin a new one"
        )


_caches: dict[tuple[int, Path], AnswerCache] = {}
_opening = threading.Lock()


def cache_in(folder: Path) -> AnswerCache:
    """Return this process's one cache of a directory, which is made if it is not there.

    Raises:
        StoreError: the directory cannot be written, or what lies there is not a cache.
    """
    place = (os.getpid(), folder.resolve())
    with _opening:
        if place not in _caches:
            _caches[place] = AnswerCache(folder)
        return _caches[place]

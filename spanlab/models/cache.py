"""Answers that cost money or time, kept so that none is paid for twice.

With an SQLite database they lie in files beside it, ``<home>/cache/models/answers.db`` and
``<home>/cache/retrieval/answers.db``, which any number of processes of one machine may share; with
PostgreSQL they are a table there, which all workers share and in which they expire after 30 days.
An answer that ``put`` has returned for survives the end of the process, however it ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from warnings import warn

from spanlab.base.errors import DeprecatedWarning, StoreError
from spanlab.base.runtime import SingleFlight
from spanlab.base.settings import Settings
from spanlab.schema import storable_json

Answer = dict[str, object]
_BUSY_SECONDS = 30.0  # that a write waits for those of other processes
_FORM = 1  # of the file, as its user_version: 1.0 wrote none


class AnswerCache(ABC):
    """A cache of answers, each a JSON object under a key; ``answer_cache`` opens one.

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
            answer = None if text is None else storable_json(text)
        except ValueError:
            return None
        return answer if isinstance(answer, dict) else None

    async def put(self, key: str, answer: Answer) -> None:
        """Store an answer; it is stored also if the waiting for it is cancelled.

        Raises:
            StoreError: the cache cannot be written.
        """
        # Escapes alone: models do send half an emoji, which no database takes as text.
        await self._put(key, json.dumps(answer))

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


class _AnswerRow(NamedTuple):
    """An answer to be stored, and what its caller awaits, who may leave at any moment."""

    values: tuple[str, str, float]
    written: asyncio.Future[None]


def _end(waiting: Iterable[asyncio.Future[None]], error: Exception | None) -> None:
    for future in waiting:
        if future.done():  # cancelled
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


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
        self._reads = threading.Lock()
        self._waiting: dict[asyncio.AbstractEventLoop, list[_AnswerRow]] = {}
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="spanlab-answers")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._reading, self._writing = self._connect(), self._connect()
        except (OSError, sqlite3.Error) as error:
            raise self._trouble(error) from error

    def tell_of_earlier(self) -> None:
        """Warn, the first time, of replies of 1.0: most of its prompts are asked no more."""
        try:
            if self._writing.execute("PRAGMA user_version").fetchone() != (0,):
                return
            has_replies = self._writing.execute("SELECT 1 FROM answers LIMIT 1").fetchone()
            self._writing.execute(f"PRAGMA user_version = {_FORM}")
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        if has_replies:
            warn(
                f"{self._path} has replies to prompts of 1.0, which have changed: models are "
                "asked once more where a prompt is another now",
                DeprecatedWarning,
                stacklevel=2,
            )

    async def forget(self, key: str) -> None:
        """Drop an answer, if there is one."""
        writing = self._writer.submit(self._write, "DELETE FROM answers WHERE key = ?", [(key,)])
        await asyncio.wrap_future(writing)

    async def _get(self, key: str) -> str | None:
        try:
            with self._reads:  # here and now: it takes less than a thread would
                query = "SELECT answer FROM answers WHERE key = ?"
                row = self._reading.execute(query, (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        return None if row is None else str(row[0])

    async def _put(self, key: str, text: str) -> None:
        """Store an answer, together with all others of the same turn of the event loop.

        With 128 calls at once that is about ten, for which one transaction and one signal take
        less processor time than a thread's turn for each.
        """
        loop = asyncio.get_running_loop()
        row = _AnswerRow((key, text, time.time()), loop.create_future())
        waiting = self._waiting.get(loop)
        if waiting is None:
            waiting = self._waiting[loop] = []
            loop.call_soon(self._hand_over, loop)
        waiting.append(row)
        await row.written

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        self._writer.submit(self._write_rows, loop, self._waiting.pop(loop))

    def _write_rows(self, loop: asyncio.AbstractEventLoop, rows: Sequence[_AnswerRow]) -> None:
        """Write in the writer's thread; nothing that fails ends it."""
        error: Exception | None = None
        try:
            values = [row.values for row in rows]
            self._write("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", values)
        except Exception as failure:  # noqa: BLE001 - it is for those who wait, whatever it is
            error = failure
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_end, [row.written for row in rows], error)

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            with self._writing:  # commits, or takes back what failed
                self._writing.executemany(statement, rows)
        except sqlite3.Error as error:
            raise self._trouble(error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS answers "
                "(key TEXT PRIMARY KEY, answer TEXT NOT NULL, at REAL)"
            )
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _trouble(self, error: Exception) -> StoreError:
        from spanlab.storage.engine import in_words

        broken = not isinstance(error, OSError | sqlite3.OperationalError)
        advice = "; move the file away to begin a new one" if broken else ""
        words = f"{in_words(error, self._path)}{advice}"
        return StoreError(f"the cache of answers at {self._path} cannot be used: {words}")


def answer_cache(settings: Settings, name: Literal["models", "retrieval"]) -> AnswerCache:
    """Return the cache of a name that this process shares, beside the database or in it.

    Args:
        settings: which database, and the home.
        name: whose answers.

    Raises:
        StoreError: it cannot be used.
    """
    if settings.database_url.startswith("sqlite"):
        kept = answer_file(settings.home / "cache" / name)
        if name == "models":
            kept.tell_of_earlier()
        return kept

    with _opening:
        return _open_table(settings, name)


def answer_file(folder: Path) -> AnswerFile:
    """Return the cache of a directory that this process shares; see ``AnswerFile``."""
    with _opening:
        return _open_file(folder.resolve())


# One cache for each place: who asks the same at the same time has to meet there.
@cache
def _open_file(folder: Path) -> AnswerFile:
    return AnswerFile(folder)


@cache
def _open_table(settings: Settings, name: str) -> AnswerCache:
    return AnswerTable(settings, name)


_opening = threading.Lock()  # two threads that open one at the same time get the same
_KEPT_SECONDS = 30 * 86_400.0
_PATIENCE = 60.0  # seconds for which a database that does not answer is tried again
_PAUSE = 0.25
_SELECT = "SELECT answer FROM answers WHERE cache = :cache AND key = :key"
_DELETE = "DELETE FROM answers WHERE cache = :cache AND key = :key"
# Where no answer came for so long, all stay: the clock may have been put forward.
_EXPIRE = "DELETE FROM answers WHERE at < :at AND EXISTS (SELECT 1 FROM answers WHERE at >= :at)"
_INSERT = (
    "INSERT INTO answers (cache, key, answer, at) VALUES (:cache, :key, :answer, :at) "
    "ON CONFLICT (cache, key) DO UPDATE SET answer = excluded.answer, at = excluded.at"
)


class AnswerTable(AnswerCache):
    """The cache of one name in a PostgreSQL database.

    Args:
        settings: the database, which is brought up to date.
        name: which answers, such as "models".

    Raises:
        StoreError: the database cannot be reached.
    """

    def __init__(self, settings: Settings, name: str) -> None:
        from sqlalchemy import create_engine, text

        from spanlab.storage.engine import Database, watchful
        from spanlab.storage.upgrade import upgrade

        super().__init__()
        self._name = name
        database = Database(settings.database_url)
        upgrade(database, settings.home / "backups")
        with database.writing() as connection:
            connection.execute(text(_EXPIRE), {"at": time.time() - _KEPT_SECONDS})
        database.close()
        # One statement at a time, tried again if it fails: neither a transaction nor a look
        # whether the connection is still there is of use, and they take half of the time.
        self._engine = create_engine(
            watchful(database.url), isolation_level="AUTOCOMMIT", pool_reset_on_return=None
        )

    async def forget(self, key: str) -> None:
        """Drop an answer, if there is one."""
        await self._run(_DELETE, key=key)

    async def _get(self, key: str) -> str | None:
        row = await self._run(_SELECT, key=key)
        return None if row is None else str(row)

    async def _put(self, key: str, text: str) -> None:
        await asyncio.shield(self._run(_INSERT, key=key, answer=text, at=time.time()))

    async def _run(self, statement: str, **values: object) -> object:
        """Run a statement in a thread, again and again while the database is away.

        Returns:
            What a SELECT finds; None if that is nothing, or for any other statement.
        """
        from sqlalchemy import text
        from sqlalchemy.exc import SQLAlchemyError

        from spanlab.storage.engine import in_words

        def attempt() -> object:
            with self._engine.connect() as connection:
                result = connection.execute(text(statement), {"cache": self._name, **values})
                return result.scalar() if result.returns_rows else None

        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return await asyncio.to_thread(attempt)
            except SQLAlchemyError as error:
                if time.monotonic() > deadline:
                    raise StoreError(f"the cache of answers: {in_words(error)}") from error
            await asyncio.sleep(_PAUSE)


@dataclass
class EngineCall:
    """A call of an LM: dspy's rollout_id, and its cached answers (``n``) as cache and key."""

    rollout: object = None
    answers: list[tuple[AnswerCache, str]] = field(default_factory=list)


_call: ContextVar[EngineCall] = ContextVar("_call")


def begin_call(rollout: object) -> None:
    """Note in this context that a call of an LM begins, and its rollout_id."""
    _call.set(EngineCall(rollout))


def current_call() -> EngineCall:
    """Return the call that this task is about."""
    return _call.get(None) or EngineCall()


async def forget_last_call() -> None:
    """Drop the answers of this task's last call from the cache: one of them is of no use."""
    call = current_call()
    while call.answers:
        cache, key = call.answers.pop()
        await cache.forget(key)


def answer_key(url: str, body: bytes, call: EngineCall) -> str:
    """Return the cache key of a request, which says all that the answer depends on.

    The key of the endpoint is no part of it; which rollout of dspy's, and which of several
    answers to it, is.
    """
    digest = hashlib.sha256(url.encode())
    digest.update(f"\n{call.rollout!r} {len(call.answers)}\n".encode())
    digest.update(body)
    return digest.hexdigest()

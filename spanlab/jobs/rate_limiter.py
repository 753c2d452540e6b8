"""The limit on a job's model calls a minute, kept by all its workers together.

The jobs' database holds for each such job when its next call may begin. A worker reserves the next
calls in one statement, so no two workers reserve the same; the database's clock alone counts.

Kept libraries were looked at: limits and aiolimiter know neither SQLite nor PostgreSQL.
pyrate-limiter does, with a row for every call, a table to be locked for every job and a pool of
connections of its own; and it neither spaces calls evenly nor ends a wait that is no longer wanted.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from spanlab.errors import BudgetError
from spanlab.jobs import database

if TYPE_CHECKING:
    from spanlab.jobs.worker import Worker
    from spanlab.settings import Settings

_AHEAD = 0.5  # seconds for which calls are reserved: more would be lost when a worker ends
_WORKERS = 200  # more than share a job: each has calls of one span reserved
_LOOK = 0.25  # seconds between two looks at whether the call is still wanted
_UNREACHABLE = 60.0  # seconds that a database which does not answer is tried again
_LOCK = 730_216  # PostgreSQL's advisory lock for making the table
_POSTGRESQL = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
_SQLITE = "(julianday('now') - 2440587.5) * 86400.0"

StopReason = Callable[[], str | None]  # says why a call is no longer wanted, if it is not

# Why the work that a call belongs to should stop; set around each part of a job.
stop_reason: ContextVar[StopReason] = ContextVar("stop_reason", default=lambda: None)


class JobCalls:
    """What every model call of one job waits for in one process, before each attempt.

    A worker that the database has not heard of for some seconds may be cut off: others may be
    given its work, and would ask what it asks. So it asks nothing before it is sure again that it
    is not. After that comes the rate limit.

    Args:
        me: the process's worker.
        job_id: the job.
        rate: calls a minute, above 0; None for no limit.
    """

    def __init__(self, me: Worker, job_id: str, rate: float | None) -> None:
        self._me = me
        self._limiter = None if rate is None else RateLimiter(me.settings, job_id, rate)

    async def wait(self) -> None:
        """Wait in the worker's event loop until a call may be made.

        Raises:
            BudgetError: the call's work is to stop; the message is the reason.
            StoreError: the database does not answer.
        """
        await self._wait(stop_reason.get())

    def from_other_loops(self, reason: StopReason) -> Callable[[], Awaitable[None]]:
        """Return what waits in any other event loop, while the running one goes on.

        It returns early if there is a reason to stop.
        """
        loop = asyncio.get_running_loop()

        async def wait() -> None:
            if self._limiter is None and self._me.is_sure():
                return
            waiting = asyncio.run_coroutine_threadsafe(self._wait(reason), loop)
            with suppress(BudgetError):
                await asyncio.wrap_future(waiting)

        return wait

    async def _wait(self, reason: StopReason) -> None:
        _go_on(reason)
        while not self._me.is_sure():
            await asyncio.sleep(_LOOK)
            _go_on(reason)
        if self._limiter is not None:
            await self._limiter.wait(reason)


class RateLimiter:
    """The rate limit of one job in one process; one event loop alone uses it.

    Args:
        settings: which database.
        job_id: the job's id.
        rate: calls a minute, above 0.
    """

    def __init__(self, settings: Settings, job_id: str, rate: float) -> None:
        self._settings = settings
        self._job_id = job_id
        self._spacing = 60.0 / rate
        schema = "" if database.is_sqlite(settings) else f"{database.SCHEMA}."
        self._table = f"{schema}next_calls"
        self._reserved: deque[float] = deque()  # on this process's monotonic clock
        self._one_at_a_time = asyncio.Lock()
        self._made = False

    async def wait(self, reason: StopReason) -> None:
        """Wait until a call may begin: one after the other, evenly spaced.

        Args:
            reason: asked again and again whether the call is still wanted.

        Raises:
            BudgetError: it is not; the message is the reason.
            StoreError: the database does not answer.
        """
        async with self._one_at_a_time:
            _go_on(reason)
            if not self._reserved:
                await self._reserve(reason)
            at = self._reserved.popleft()
            while (left := at - time.monotonic()) > 0:
                _go_on(reason)
                await asyncio.sleep(min(left, _LOOK))

    async def _reserve(self, reason: StopReason) -> None:
        count = max(1, int(_AHEAD / self._spacing))
        deadline = time.monotonic() + _UNREACHABLE
        while True:
            try:
                first = await asyncio.to_thread(self._first_of, count)
            except SQLAlchemyError as error:
                if time.monotonic() > deadline:
                    raise database.refusal(self._settings, error) from error
            else:
                self._reserved.extend(first + number * self._spacing for number in range(count))
                return
            _go_on(reason)
            await asyncio.sleep(_LOOK)

    def _first_of(self, count: int) -> float:
        """Reserve the next calls and return when the first one may begin."""
        with database.connection(self._settings) as connection:
            if not self._made:
                self._make(connection)
                self._made = True
            now = _SQLITE if database.is_sqlite(self._settings) else _POSTGRESQL
            # What lies further ahead than any number of workers reserves is no reservation: the
            # clock was set back.
            # Only names and expressions of ours stand in the text; values are bound.
            reserve = text(
                f"INSERT INTO {self._table} AS held (job, at) VALUES (:job, {now} + :span) "  # noqa: S608
                f"ON CONFLICT (job) DO UPDATE SET at = :span + CASE "
                f"WHEN held.at > {now} AND held.at < {now} + :most THEN held.at ELSE {now} END "
                f"RETURNING at - :span - {now}"
            )
            span = count * self._spacing
            given = {"job": self._job_id, "span": span, "most": _WORKERS * span}
            until = float(connection.execute(reserve, given).scalar_one())
            return time.monotonic() + until

    def _make(self, connection: Connection) -> None:
        if not database.is_sqlite(self._settings):
            # IF NOT EXISTS alone does not keep two workers from making it at the same time.
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        connection.execute(
            text(
                f"CREATE TABLE IF NOT EXISTS {self._table} "
                "(job TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL)"
            )
        )


def _go_on(reason: StopReason) -> None:
    """Raise a ``BudgetError`` with the reason to stop, if there is one."""
    words = reason()
    if words is not None:
        raise BudgetError(words)

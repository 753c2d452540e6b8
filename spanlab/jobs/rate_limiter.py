"""The limits on a job's model calls, a minute and in all, kept by all its workers together.

The jobs' database holds for each such job when its next call may begin. A worker reserves the next
calls in one statement, so no two workers reserve the same; the database's clock alone counts.

Of a job with a budget it holds what is spent or reserved of each limit. Workers reserve in small
blocks and give the rest back; what a killed one had reserved counts as spent.

Kept libraries were looked at: limits and aiolimiter know neither SQLite nor PostgreSQL.
pyrate-limiter does, with a row for every call, a table to be locked for every job and a pool of
connections of its own; and it neither spaces calls evenly nor ends a wait that is no longer wanted.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from spanlab.base.errors import BudgetError
from spanlab.jobs import database

if TYPE_CHECKING:
    from spanlab.base.settings import Settings
    from spanlab.jobs.worker import Worker
    from spanlab.schema.usage import Budget, CallLimits, Usage

_AHEAD = 0.5  # seconds for which calls are reserved: more would be lost when a worker ends
_WORKERS = 200  # more than share a job: each has calls of one span reserved
_LOOK = 0.25  # seconds between two looks at whether the call is still wanted
_UNREACHABLE = 60.0  # seconds that a database which does not answer is tried again
_BLOCK = 0.01  # of what is left of a budget, reserved at once
_LOCK = 730_216  # PostgreSQL's advisory lock for making the tables
_TABLES = {
    "next_calls": "job TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL",
    "spent": "job TEXT, name TEXT, amount DOUBLE PRECISION NOT NULL, PRIMARY KEY (job, name)",
}
_POSTGRESQL = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
_SQLITE = "(julianday('now') - 2440587.5) * 86400.0"

StopReason = Callable[[], str | None]  # says why a call is no longer wanted, if it is not

# Why the work that a call belongs to should stop; set around each part of a job.
stop_reason: ContextVar[StopReason] = ContextVar("stop_reason", default=lambda: None)


class JobCalls:
    """Holds back the model calls of one job in one process until each may be made.

    A worker that the database has not heard of for some seconds may be cut off: others may be
    given its work, and would make the same calls. So its calls wait until it is sure that it is
    not cut off. After that comes the rate limit.

    Args:
        me: the process's worker.
        job_id: the job.
        limits: of the job's calls, of which this keeps the rate.
    """

    def __init__(self, me: Worker, job_id: str, limits: CallLimits) -> None:
        self._me = me
        rate = limits.rate
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
        _check_wanted(reason)
        while not self._me.is_sure():
            await asyncio.sleep(_LOOK)
            _check_wanted(reason)
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
        self._table = _table(settings, "next_calls")
        self._reserved: deque[float] = deque()  # on this process's monotonic clock
        self._one_at_a_time = asyncio.Lock()

    async def wait(self, reason: StopReason) -> None:
        """Wait until a call may begin: one after the other, evenly spaced.

        Args:
            reason: asked again and again whether the call is still wanted.

        Raises:
            BudgetError: it is not; the message is the reason.
            StoreError: the database does not answer.
        """
        async with self._one_at_a_time:
            _check_wanted(reason)
            if not self._reserved:
                await self._reserve(reason)
            at = self._reserved.popleft()
            while (remaining := at - time.monotonic()) > 0:
                _check_wanted(reason)
                await asyncio.sleep(min(remaining, _LOOK))

    async def _reserve(self, reason: StopReason) -> None:
        count = max(1, int(_AHEAD / self._spacing))
        first = await _retry_until_answered(
            self._settings, partial(self._reserve_calls, count), reason
        )
        self._reserved.extend(first + number * self._spacing for number in range(count))

    def _reserve_calls(self, count: int) -> float:
        """Reserve the next calls and return when the first one may begin."""
        with database.connection(self._settings) as connection:
            now = _SQLITE if database.is_sqlite(self._settings) else _POSTGRESQL
            # What lies further ahead than any number of workers reserves is no reservation: the
            # clock was set back.
            # Only names and expressions of ours stand in the text; values are bound.
            reserve = text(
                f"INSERT INTO {self._table} AS held (job, at) VALUES (:job, {now} + :span) "  # noqa: S608 - as said above
                f"ON CONFLICT (job) DO UPDATE SET at = :span + CASE "
                f"WHEN held.at > {now} AND held.at < {now} + :most THEN held.at ELSE {now} END "
                f"RETURNING at - :span - {now}"
            )
            span = count * self._spacing
            values = {"job": self._job_id, "span": span, "most": _WORKERS * span}
            until = float(connection.execute(reserve, values).scalar_one())
            return time.monotonic() + until


class SharedBudget:
    """The budget of one job in one process, for the meter there; one event loop alone uses it.

    Args:
        settings: which database.
        job_id: the job's id.
        budget: its limits.
        before: what the job had spent when nobody counted it here yet.
    """

    def __init__(self, settings: Settings, job_id: str, budget: Budget, before: Usage) -> None:
        self._settings = settings
        self._job_id = job_id
        self._budget = budget
        self._before = before
        self._table = _table(settings, "spent")
        self._began = time.monotonic()
        self._reserved: dict[str, float] = {}

    async def reserve(self, name: str, beyond: float, wanted: float) -> float:
        """Change how much of a limit this process has reserved.

        Args:
            name: the limit, a field of ``Budget``; the amounts below are in its unit.
            beyond: what calls have spent, or are expected to, beyond what is reserved; below 0
                what is given back.
            wanted: the least to reserve in addition; 0 for nothing.

        Returns:
            The change of what is reserved; without ``wanted`` once less than that is left.

        Raises:
            BudgetError: the work is to stop; the message is the reason.
            StoreError: the database does not answer.
        """
        # What is given back is given back once: whether an attempt that failed did is not known.
        change = partial(self._change, name, beyond, wanted)
        return await _retry_until_answered(
            self._settings, change, stop_reason.get() if wanted else None
        )

    def _change(self, name: str, beyond: float, wanted: float) -> float:
        limit = float(getattr(self._budget, name))
        is_integer = isinstance(getattr(self._budget, name), int)
        key = {"job": self._job_id, "name": name}
        before = float(getattr(self._before, name) or 0)
        # Only names of ours stand in the text; values are bound.
        begin = f"INSERT INTO {self._table} VALUES (:job, :name, :old) ON CONFLICT DO NOTHING"  # noqa: S608 - as said above
        look = f"SELECT amount FROM {self._table} WHERE job = :job AND name = :name"  # noqa: S608 - as said above
        swap = f"UPDATE {self._table} SET amount = :new WHERE job = :job AND name = :name AND amount = :old"  # noqa: E501, S608 - as said above; one statement
        while True:
            with database.connection(self._settings) as connection:
                old = connection.execute(text(look), key).scalar()
                if old is None:
                    connection.execute(text(begin), {**key, "old": before})
                    continue
                left = limit - old - beyond
                block = 0.0
                if wanted and left >= wanted:
                    block = max(self._block(name, left), wanted)
                    block = min(math.ceil(block) if is_integer else block, left)
                new = old + beyond + block
                values = {**key, "old": old, "new": new}
                if new == old or connection.execute(text(swap), values).rowcount:
                    self._reserved[name] = self._reserved.get(name, 0.0) + new - old
                    return float(new - old)

    def _block(self, name: str, left: float) -> float:
        """Return the size of a block: a hundredth of what is left, or a second's use if less."""
        seconds = max(time.monotonic() - self._began, 1.0)
        return min(left * _BLOCK, self._reserved.get(name, 0.0) / seconds)


T = TypeVar("T")


async def _retry_until_answered(
    settings: Settings, work: Callable[[], T], reason: StopReason | None
) -> T:
    """Do work on the tables; try again for a minute while the database does not answer."""
    deadline = time.monotonic() + _UNREACHABLE
    while True:
        try:
            return await asyncio.to_thread(_with_tables, settings, work)
        except SQLAlchemyError as error:
            if reason is None or time.monotonic() > deadline:
                raise database.refusal(settings, error) from error
        _check_wanted(reason)
        await asyncio.sleep(_LOOK)


def _with_tables(settings: Settings, work: Callable[[], T]) -> T:
    url = database.url_of(settings)
    if url not in _MADE:
        with database.connection(settings) as connection:
            if not database.is_sqlite(settings):
                # IF NOT EXISTS alone does not keep two workers from making it at the same time.
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            for name, columns in _TABLES.items():
                table = _table(settings, name)
                connection.execute(text(f"CREATE TABLE IF NOT EXISTS {table} ({columns})"))
        _MADE.add(url)
    return work()


_MADE: set[str] = set()  # URLs of databases that have the tables


def _table(settings: Settings, name: str) -> str:
    return name if database.is_sqlite(settings) else f"{database.SCHEMA}.{name}"


def _check_wanted(reason: StopReason) -> None:
    """Raise a ``BudgetError`` with the reason to stop, if there is one."""
    words = reason()
    if words is not None:
        raise BudgetError(words)

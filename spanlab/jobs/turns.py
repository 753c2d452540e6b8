"""A limit on a job's model calls a minute, kept by all its workers together.

The jobs' database holds for each such job when its next call may begin. A worker takes the next
turns in one statement, so no two of them take the same; the database's clock alone counts.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from spanlab.errors import BudgetError, StoreError
from spanlab.jobs import database

if TYPE_CHECKING:
    from spanlab.settings import Settings

_AHEAD = 0.5  # seconds for which turns are taken at once: more would be lost when a worker ends
LOOK = 0.25  # seconds between two looks at whether the call is still wanted
_UNREACHABLE = 60.0  # seconds that a database which does not answer is tried again
_LOCK = 730_216  # PostgreSQL's advisory lock for making the table
_POSTGRESQL = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
_SQLITE = "(julianday('now') - 2440587.5) * 86400.0"

Rest = Callable[[], str | None]  # says why work should be put aside, if it should


class Turns:
    """The turns of one job in one process; its event loop alone uses them.

    Args:
        settings: which database.
        job_id: the job's id.
        rate: calls a minute, above 0.
    """

    def __init__(self, settings: Settings, job_id: str, rate: float) -> None:
        self._settings = settings
        self._job_id = job_id
        self._spacing = 60.0 / rate
        self._table = "turns" if database.is_sqlite(settings) else f"{database.SCHEMA}.turns"
        self._taken: deque[float] = deque()  # on this process's monotonic clock
        self._next = asyncio.Lock()
        self._made = False

    async def wait(self, rest: Rest) -> None:
        """Wait until a call may begin: one after the other, evenly spaced.

        Args:
            rest: asked again and again whether the call is still wanted.

        Raises:
            BudgetError: it is not; the message is the reason.
            StoreError: the database does not answer.
        """
        async with self._next:
            go_on(rest)
            if not self._taken:
                await self._take(rest)
            at = self._taken.popleft()
            while (left := at - time.monotonic()) > 0:
                go_on(rest)
                await asyncio.sleep(min(left, LOOK))

    async def _take(self, rest: Rest) -> None:
        count = max(1, int(_AHEAD / self._spacing))
        deadline = time.monotonic() + _UNREACHABLE
        while True:
            try:
                first = await asyncio.to_thread(self._reserve, count)
            except SQLAlchemyError as error:
                if time.monotonic() > deadline:
                    raise StoreError(f"the jobs' database: {str(error).strip()}") from error
            else:
                self._taken.extend(first + number * self._spacing for number in range(count))
                return
            go_on(rest)
            await asyncio.sleep(LOOK)

    def _reserve(self, count: int) -> float:
        """Take the next turns and return when the first one is."""
        with database.connection(self._settings) as connection:
            if not self._made:
                self._make(connection)
                self._made = True
            now = _SQLITE if database.is_sqlite(self._settings) else _POSTGRESQL
            taken = text(
                f"INSERT INTO {self._table} AS held (job, free) VALUES (:job, {now} + :span) "
                f"ON CONFLICT (job) DO UPDATE SET free = :span + "
                f"CASE WHEN held.free > {now} THEN held.free ELSE {now} END "
                f"RETURNING free - :span - {now}"
            )
            given = {"job": self._job_id, "span": count * self._spacing}
            until = float(connection.execute(taken, given).scalar_one())
            return time.monotonic() + until

    def _make(self, connection: Connection) -> None:
        if not database.is_sqlite(self._settings):
            # IF NOT EXISTS alone does not keep two workers from making it at the same time.
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        connection.execute(
            text(
                f"CREATE TABLE IF NOT EXISTS {self._table} "
                "(job TEXT PRIMARY KEY, free DOUBLE PRECISION NOT NULL)"
            )
        )


def go_on(rest: Rest) -> None:
    """Raise a ``BudgetError`` with the reason to put work aside, if there is one."""
    reason = rest()
    if reason is not None:
        raise BudgetError(reason)

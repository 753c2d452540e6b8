"""What every model call of a job passes before it goes out.

A worker that the database has not heard of for some seconds may be cut off: others may be given
its work, and would ask what it asks. So it asks nothing before it is sure again that it is not.
After that the calls of a job take turns, if their rate is limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from spanlab.errors import BudgetError
from spanlab.jobs.turns import LOOK, Rest, Turns, go_on

if TYPE_CHECKING:
    from spanlab.jobs.worker import Worker

# Why the work that a call belongs to should be put aside, if it should; set around each part.
resting: ContextVar[Rest] = ContextVar("resting", default=lambda: None)


class Gate:
    """The gate of one job in one process.

    Args:
        me: the process's worker.
        job_id: the job.
        rate: calls a minute; None for no limit.
    """

    def __init__(self, me: Worker, job_id: str, rate: float | None) -> None:
        self._me = me
        self._turns = None if rate is None else Turns(me.settings, job_id, rate)

    async def wait(self) -> None:
        """Wait in the worker's event loop until a call may go out.

        Raises:
            BudgetError: the call's work is to be put aside; the message is its reason.
            StoreError: the database does not answer.
        """
        await self._wait(resting.get())

    def elsewhere(self, rest: Rest) -> Callable[[], Awaitable[None]]:
        """Return what waits in any other event loop; it returns early if there is a reason to rest.

        It is called while the running event loop goes on.
        """
        loop = asyncio.get_running_loop()

        async def wait() -> None:
            if self._turns is None and self._me.is_sure():
                return
            with suppress(BudgetError):
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._wait(rest), loop))

        return wait

    async def _wait(self, rest: Rest) -> None:
        go_on(rest)
        while not self._me.is_sure():
            await asyncio.sleep(LOOK)
            go_on(rest)
        if self._turns is not None:
            await self._turns.wait(rest)

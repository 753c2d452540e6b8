"""Work of a job in a thread: its progress is saved, and it stops with its job."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from spanlab.base.errors import StoppedError
from spanlab.jobs import job_store, worker
from spanlab.jobs.rate_limiter import JobCalls
from spanlab.jobs.steps import interruption
from spanlab.jobs.worker import Worker
from spanlab.models import Meter
from spanlab.schema.usage import CallLimits

if TYPE_CHECKING:
    from dbos import WorkflowStatus

T = TypeVar("T")


M = TypeVar("M", bound=Meter)


M_contra = TypeVar("M_contra", bound=Meter, contravariant=True)


_EVERY = 0.5  # seconds between two reports of how far a search is


class SavedLog(Protocol[M_contra]):
    """The progress of work in a thread, which a worker saves from time to time."""

    def save(self, jobs: job_store.JobStore, job_id: str, stopper: M_contra, /) -> None:
        """Save with the job what is new since the last time."""


@dataclass
class ThreadWatch:
    """Watches work in a thread: saves its progress, and stops it if its job is stopped.

    ``row`` is the job's, and ``cut_off`` the worker's, when the work began.
    """

    me: Worker
    job_id: str
    row: WorkflowStatus
    cut_off: int
    stopped: threading.Event = field(default_factory=threading.Event)

    @classmethod
    async def begun(cls, job_id: str) -> ThreadWatch:
        """Return a watch over work that is about to begin.

        Raises:
            DBOSWorkflowCancelledError: the job is not this worker's.
        """
        me = worker.current()
        cut_off = me.cut_off
        row = await asyncio.to_thread(me.jobs.part, job_id)
        if not me.owns(row):
            raise interruption()
        return cls(me, job_id, row, cut_off)

    def pace(self, limits: CallLimits) -> Callable[[], Awaitable[None]]:
        """Return what the thread's calls wait for, within the limits of the job."""
        calls = JobCalls(self.me, self.job_id, limits)
        return calls.from_other_loops(lambda: "stopped" if self.stopped.is_set() else None)

    async def run(self, work: Callable[[], T], log: SavedLog[M], meter: M) -> T:
        """Do the work in a thread and return its result; ``log`` is saved meanwhile.

        Raises:
            DBOSWorkflowCancelledError: the work was stopped, or is another worker's now.
        """
        with self.me.working():
            running = asyncio.create_task(asyncio.to_thread(work))
            try:
                while not running.done():
                    await asyncio.wait([running], timeout=_EVERY)
                    await self._look(log, meter)
                return running.result()
            except StoppedError as error:
                raise interruption() from error
            finally:
                self.stopped.set()
                await asyncio.gather(running, return_exceptions=True)  # calls under way are paid
                await self._look(log, meter)

    async def _look(self, log: SavedLog[M], meter: M) -> None:
        row = await asyncio.to_thread(self.me.jobs.part, self.job_id)
        if self.me.stopping or self.me.cut_off != self.cut_off or not self.me.owns(row):
            self.stopped.set()
        # Of one that was stopped, or resumed and waits, nobody else tells how far it is.
        tells = self.me.owns(row) or row.status in {"CANCELLED", "ENQUEUED"}
        if tells and self.me.cut_off == self.cut_off:
            await asyncio.to_thread(log.save, self.me.jobs, self.job_id, meter)

"""Work of a job in a thread: its progress is saved, and it stops with its job."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from spanlab.base.errors import StoppedError
from spanlab.jobs import job_store
from spanlab.jobs.steps import interruption
from spanlab.jobs.worker import Worker
from spanlab.models import Meter

T = TypeVar("T")


M = TypeVar("M", bound=Meter)


M_contra = TypeVar("M_contra", bound=Meter, contravariant=True)


_EVERY = 0.5  # seconds between two reports of how far a search is


class SavedLog(Protocol[M_contra]):
    """The progress of work in a thread, which a worker saves from time to time."""

    def save(self, jobs: job_store.JobStore, job_id: str, stopper: M_contra, /) -> None:
        """Save with the job what is new since the last time."""


@dataclass
class ThreadWatch(Generic[M]):
    """Watches work in a thread: saves its progress, and stops it if its job is stopped.

    ``cut_off`` is the worker's when the work began. ``reports`` says whether this worker still
    tells of the job's progress.
    """

    me: Worker
    job_id: str
    progress_log: SavedLog[M]
    stopper: M
    stopped: threading.Event
    cut_off: int
    reports: bool = True

    async def until_over(self, running: asyncio.Task[T]) -> T:
        """Wait for the work and return its result.

        Raises:
            DBOSWorkflowCancelledError: the work was stopped, or is another worker's now.
        """
        try:
            while not running.done():
                await asyncio.wait([running], timeout=_EVERY)
                await self._look()
            return running.result()
        except StoppedError as error:
            raise interruption() from error
        finally:
            self.stopped.set()
            await asyncio.gather(running, return_exceptions=True)  # its calls under way are paid
            await self._look()

    async def _look(self) -> None:
        row = await asyncio.to_thread(self.me.jobs.part, self.job_id)
        # Of one that was stopped, or resumed and waits, nobody else tells how far it is.
        self.reports = self.me.owns(row) or row.status in {"CANCELLED", "ENQUEUED"}
        if self.me.stopping or self.me.cut_off != self.cut_off or not self.me.owns(row):
            self.stopped.set()
        await self._report()

    async def _report(self) -> None:
        if self.reports and self.me.cut_off == self.cut_off:
            await asyncio.to_thread(self.progress_log.save, self.me.jobs, self.job_id, self.stopper)

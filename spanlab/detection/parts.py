"""A worker's work on one part of a detection job, with reports of its progress."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from spanlab.base.errors import StoreError
from spanlab.detection.ensemble import Ensemble
from spanlab.detection.request import RunRequest, ensemble_of
from spanlab.detection.run import DatasetRun, ItemBatch
from spanlab.detection.setup import takes_over
from spanlab.jobs import worker
from spanlab.jobs.rate_limiter import JobCalls, SharedBudget, stop_reason
from spanlab.jobs.views import JobState, PartState
from spanlab.jobs.worker import Worker
from spanlab.models import Meter
from spanlab.schema.usage import Usage

_EVERY = 0.4  # seconds between two reports of how far a part is
_FAILURES = 1000  # of a part, that are remembered
_KEPT = 4  # jobs whose detectors a worker keeps built
_INTERRUPTED = "interrupted"


@dataclass
class JobResources:
    """What the parts of one job share in one process: detectors, meter and slots for items."""

    ensemble: Ensemble
    meter: Meter
    slots: asyncio.Semaphore
    _counted: Usage = field(default_factory=Usage)

    def spent(self) -> Usage:
        """Return what the model calls came to since this was last called."""
        usage = self.meter.usage
        before, self._counted = self._counted, usage
        return usage - before


@dataclass
class ResourceCache:
    """The resources of the jobs that a process works on; its event loop alone uses them."""

    open: OrderedDict[str, asyncio.Task[JobResources]] = field(default_factory=OrderedDict)
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    async def get(self, job_id: str, request: RunRequest) -> JobResources:
        """Return the resources of a job; build them when its first part comes."""
        if job_id not in self.open:
            self.open[job_id] = asyncio.create_task(_set_up(job_id, request))
        self.open.move_to_end(job_id)
        while len(self.open) > _KEPT:
            self.open.popitem(last=False)
        try:
            return await asyncio.shield(self.open[job_id])
        except BaseException:
            self.open.pop(job_id, None)
            raise


_CACHES: WeakKeyDictionary[Worker, ResourceCache] = WeakKeyDictionary()


def resources_of(me: Worker) -> ResourceCache:
    """Return the cache of a worker, with what its jobs share."""
    return _CACHES.setdefault(me, ResourceCache())


async def work_on(
    part_id: str, job_id: str, request: RunRequest, positions: Sequence[int]
) -> PartState | None:
    """Run the job's detectors on those items of a part that are not done yet, saving each.

    Args:
        part_id: id of the part's workflow.
        job_id: id of the job.
        request: the job's request.
        positions: positions of the part's items in the dataset.

    Returns:
        The part's state; None if it has been stopped, or taken over by another worker.

    Raises:
        SpanlabError: a detector cannot be built, key, address or name of a model is wrong, or
            the database refuses.
    """
    me = worker.current()
    cache = resources_of(me)
    # A part that is paused and resumed at once waits until its calls under way are saved.
    async with cache.locks[part_id]:
        with me.working():
            cut_off = me.cut_off
            row = await asyncio.to_thread(me.jobs.part, part_id)
            if not me.owns(row):
                return None
            before = PartState.of(row)
            resources = await cache.get(job_id, request)
            part_run = _PartRun(me, part_id, before, usage=before.usage, cut_off=cut_off)
            given_up = frozenset(failure.item_id for failure in before.failures)
            work = ItemBatch(
                request.dataset,
                positions,
                retry_failed=request.retry_failed,
                given_up=given_up,
                again=request.again,
            )
            run = DatasetRun(
                me.store,
                resources.ensemble,
                work,
                concurrency=resources.ensemble.concurrency,
                stop=part_run.interruption,
                slots=resources.slots,
            )
            return await part_run.work(run, resources)


async def _set_up(job_id: str, request: RunRequest) -> JobResources:
    me = worker.current()
    calls = JobCalls(me, job_id, request)
    for remark in await asyncio.to_thread(list, takes_over(me.store, request, me.settings)):
        await asyncio.to_thread(me.jobs.note, job_id, remark)
    reserve = None
    if request.budget is not None:
        parts = await asyncio.to_thread(me.jobs.parts, job_id)
        before = sum((part.usage for part in parts), Usage())
        reserve = SharedBudget(me.settings, job_id, request.budget, before).reserve
    meter = Meter(
        request,
        before_attempt=calls.wait,
        concurrency=request.at_once,
        reserve=reserve,
    )
    built = await asyncio.to_thread(ensemble_of, request, meter, me.settings, me.executor)
    return JobResources(built, meter, asyncio.Semaphore(built.concurrency))


@dataclass
class _PartRun:
    """One worker's work on one part, from when it was begun to when it is over or interrupted."""

    me: Worker
    part_id: str
    before: PartState
    usage: Usage
    cut_off: int
    taken: bool = False  # by another worker, or out of the queue because somebody stopped the job
    stopped: bool = False  # by somebody: nobody else tells how far it is
    reported: PartState | None = None

    def interruption(self) -> str | None:
        """Say why the part should be interrupted, if it should."""
        gone = self.taken or self.me.stopping or self.me.cut_off != self.cut_off
        return _INTERRUPTED if gone else None

    async def work(self, run: DatasetRun, resources: JobResources) -> PartState | None:
        """Do the work, and tell how far it is."""
        over = asyncio.Event()
        stop_reason.set(self.interruption)
        reporting = asyncio.create_task(self._keep_reporting(run, resources, over))
        try:
            await run.finish()
        except StoreError:
            if not await self.me.has_lost_lease(self.cut_off):
                raise
        finally:
            with suppress(StoreError):  # what is not given back counts as spent
                await resources.meter.give_back()
            over.set()  # not cancelled: a word that comes late would overwrite the last one
            await reporting
        if self.interruption() is None or self.stopped:
            await self._report(run, resources)
        return None if self.interruption() is not None else self.reported

    async def _keep_reporting(
        self, run: DatasetRun, resources: JobResources, over: asyncio.Event
    ) -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), _EVERY)
            with suppress(StoreError):  # what is not told now is told the next time
                await self._report(run, resources)

    async def _report(self, run: DatasetRun, resources: JobResources) -> None:
        # Asked first: a worker that was cut off would tell of a part that is another's by now.
        row = await asyncio.to_thread(self.me.jobs.part, self.part_id)
        self.stopped = row.status == "CANCELLED"
        # For good: should it be this worker's once more, that is another run of it.
        self.taken = self.taken or not self.me.owns(row)
        if self.me.cut_off != self.cut_off or (self.taken and not self.stopped):
            return
        self.usage += resources.spent()
        part = PartState(
            state=JobState.RUNNING,
            done=max(run.done, self.before.done),
            usage=self.usage,
            failures=(*self.before.failures, *run.failures)[-_FAILURES:],
            stopped=None if run.stopped == _INTERRUPTED or run.broken else run.stopped,
        )
        if part != self.reported:
            await asyncio.to_thread(self.me.jobs.set_attributes, self.part_id, **part.attributes())
            self.reported = part

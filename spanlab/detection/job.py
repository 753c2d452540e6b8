"""Detection as a job: one workflow splits its items into parts, and another works on each part.

    detect   1. plan: which items are to be done, in which parts
             2. queue the parts, for any worker
             3. follow them, telling how far they are, until all are over
    part     work on its items; begun again, it does only what is not stored yet

What a step returns is kept by DBOS and not done again, so the order of the steps is fixed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from dbos import DBOS, SetWorkflowID

from spanlab.base.errors import NotFoundError, SpanlabError
from spanlab.detection.parts import work_on
from spanlab.detection.request import RunRequest
from spanlab.detection.run import unfinished_positions
from spanlab.detection.setup import covers, earlier_versions, note_setups
from spanlab.jobs import worker
from spanlab.jobs.steps import interruption, notify_when_done, queue_for, step
from spanlab.jobs.views import KINDS, JobState, add_up_parts, progress_of
from spanlab.schema.progress import RunProgress
from spanlab.storage import api_jobs

if TYPE_CHECKING:
    from numpy.typing import NDArray

Range = list[int]  # positions [start, stop)

_SMALLEST = 32  # items of a part, so that its bookkeeping does not show
# Parts of a job: a worker takes a few with each look at the queue, so a quick job takes as many
# looks as it has parts. Up to six workers share these evenly.
_MOST = 24
_EVERY = 0.5  # seconds between two looks at the parts
_RATE_SECONDS = 10.0  # over which the rate is measured


@DBOS.workflow(name=KINDS["detect"].workflow)
@notify_when_done("detect")
async def detect(request: dict[str, Any]) -> dict[str, Any]:
    """Let detectors annotate a dataset; ``request`` is a run request as JSON."""
    job_id = DBOS.workflow_id or ""
    parts = await _plan(request)
    for number, ranges in enumerate(parts):
        with SetWorkflowID(f"{job_id}-{number}"):
            queue = queue_for(request, worker.current().parts_queue)
            await DBOS.enqueue_workflow_async(queue, part, job_id, request, ranges)
    return await _follow(job_id, len(parts))


@DBOS.workflow(name="spanlab.detect.part")
async def part(job_id: str, request: dict[str, Any], ranges: list[Range]) -> dict[str, Any]:
    """Do some of the items of a detection job."""
    return await _work(job_id, request, ranges)


@step("spanlab.detect.plan")
async def _plan(request_json: dict[str, Any]) -> list[list[Range]]:
    me, job_id = worker.current(), DBOS.workflow_id or ""
    request = await asyncio.to_thread(_request_now, job_id, request_json)
    todo = await asyncio.to_thread(unfinished_positions, me.store, request)
    remarks = await asyncio.to_thread(list, earlier_versions(me.store, request))
    if len(todo):
        await asyncio.to_thread(note_setups, me.store, request, me.settings)
    parts = split_into_parts(todo, request)
    begun = RunProgress(total=len(todo), started=time.time())
    await asyncio.to_thread(me.jobs.report, job_id, begun)
    for remark in remarks:
        await asyncio.to_thread(me.jobs.note, job_id, remark)
    await asyncio.to_thread(
        me.jobs.note, job_id, f"{me.name} begins: {len(todo):,} items in {len(parts):,} parts"
    )
    return parts


@step("spanlab.detect.work")
async def _work(job_id: str, request_json: dict[str, Any], ranges: list[Range]) -> dict[str, Any]:
    positions = [position for start, stop in ranges for position in range(start, stop)]
    request = await asyncio.to_thread(_request_now, job_id, request_json)
    while True:
        try:
            state = await work_on(DBOS.workflow_id or "", job_id, request, positions)
        except NotFoundError:
            before = request
            request = await asyncio.to_thread(_request_now, job_id, request_json)
            if request == before:
                raise
            continue  # its dataset was renamed meanwhile
        if state is None:
            raise interruption()
        return {"done": state.done, "failed": state.failed}


def _request_now(job_id: str, request_json: dict[str, Any]) -> RunRequest:
    """Return a job's request, with the name that its dataset has now if the job owns it.

    Raises:
        NotFoundError: that dataset was deleted.
    """
    request = RunRequest.model_validate(request_json)
    owned = next(iter(api_jobs.find(worker.current().store, [job_id])), None)
    if owned is None:
        return request
    if owned.dataset is None:
        raise NotFoundError("the dataset of this job was deleted")
    return request.model_copy(update={"dataset": owned.dataset})


@step("spanlab.detect.follow")
async def _follow(job_id: str, count: int) -> dict[str, Any]:
    me = worker.current()
    recent_rate = _RecentRate()
    reported = None
    while True:
        row = await asyncio.to_thread(me.jobs.part, job_id)
        if me.stopping or not me.owns(row):
            raise interruption()
        parts = await asyncio.to_thread(me.jobs.parts, job_id)
        progress = recent_rate.add_to(add_up_parts(progress_of(row), parts))
        if progress != reported:
            await asyncio.to_thread(me.jobs.report, job_id, progress)
            reported = progress
        broken = next((part for part in parts if part.state is JobState.FAILED), None)
        if broken is not None:
            await asyncio.to_thread(me.jobs.stop_parts, job_id)
            raise SpanlabError(broken.error or "a part of the job broke")
        if len(parts) == count and all(part.state is JobState.DONE for part in parts):
            return {"done": progress.done, "failed": progress.failed, "stopped": progress.stopped}
        await asyncio.sleep(_EVERY)


class _RecentRate:
    """Measures a job's rate over the last ten seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add_to(self, progress: RunProgress) -> RunProgress:
        """Return ``progress`` with its rate and remaining time."""
        now = time.monotonic()
        self._seen.append((now, progress.done))
        while len(self._seen) > 2 and now - self._seen[0][0] > _RATE_SECONDS:
            self._seen.popleft()
        began, done_before = self._seen[0]
        rate = (progress.done - done_before) / (now - began) if now > began else 0.0
        remaining = progress.total - progress.done
        return replace(progress, rate=rate, remaining=remaining / rate if rate > 0 else None)


def split_into_parts(todo: NDArray[np.int64], request: RunRequest) -> list[list[Range]]:
    """Return the items of each part, as ranges of positions.

    A part is as many items as are under way at once, so that workers share a job evenly and one
    that stops leaves little behind; more where a job would have too many parts: each has to be
    found in the queue, begins and ends with rows of its own, and so it does, one after the other,
    when a budget is used up.
    """
    size = max(_SMALLEST, request.at_once, -(-len(todo) // _MOST))
    return [ranges_of(todo[first : first + size]) for first in range(0, len(todo), size)]


def ranges_of(positions: NDArray[np.int64]) -> list[Range]:
    """Return rising positions as ranges ``[start, stop)``; one or more of them."""
    breaks = np.flatnonzero(np.diff(positions) > 1) + 1
    runs = np.split(positions, breaks)
    return [[int(run[0]), int(run[-1]) + 1] for run in runs]


def same(under_way: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Say whether a run under way does all that another one asks for."""
    return covers(RunRequest.model_validate(under_way), RunRequest.model_validate(request))

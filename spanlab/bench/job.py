"""A benchmark as a job: a step for each dataset, whose cells are files that are left as they are.

A step that was killed begins again: its finished cells are there, and answers of a cell that was
under way are in the cache.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dbos import DBOS

from spanlab.base.errors import BudgetError
from spanlab.bench.cells import count_cells, run_dataset
from spanlab.bench.plan import BenchPlan
from spanlab.bench.table import finish_table
from spanlab.detection.parts import resources_of
from spanlab.jobs import job_store, worker
from spanlab.jobs.steps import interruption, notify_when_done, step
from spanlab.jobs.thread_watch import ThreadWatch
from spanlab.jobs.views import KINDS, progress_of
from spanlab.models import Meter
from spanlab.schema.progress import RunProgress
from spanlab.schema.usage import Usage


@DBOS.workflow(name=KINDS["bench"].workflow)
@notify_when_done("bench")
async def bench(request: dict[str, Any]) -> dict[str, Any]:
    """Fill a folder with a benchmark's cells and table; ``request`` is its plan as JSON."""
    job_id, done = DBOS.workflow_id or "", 0
    await _begin(job_id, request)
    for number in range(len(request["datasets"])):
        outcome = await _dataset(job_id, request, number, done)
        done = outcome["done"]
        if outcome["stopped"]:
            break
    await _finish(request)
    return {"done": done}


@step("spanlab.bench.begin")
async def _begin(job_id: str, request: dict[str, Any]) -> None:
    total = await asyncio.to_thread(count_cells, BenchPlan.model_validate(request))
    progress = RunProgress(total=total, started=time.time())
    await asyncio.to_thread(worker.current().jobs.report, job_id, progress)


@step("spanlab.bench.dataset")
async def _dataset(job_id: str, request: dict[str, Any], number: int, done: int) -> dict[str, Any]:
    # One that is paused and resumed at once waits until its calls under way are counted.
    async with resources_of(worker.current()).locks[job_id]:
        return await _run(job_id, request, number, done)


async def _run(job_id: str, request: dict[str, Any], number: int, done: int) -> dict[str, Any]:
    plan, watch = BenchPlan.model_validate(request), await ThreadWatch.begun(job_id)
    log = _CellLog(progress_of(watch.row), done)
    meter = Meter(plan, spent=log.before.usage, before_attempt=watch.pace(plan))
    settings, stopped = watch.me.settings, watch.stopped.is_set

    def work() -> bool:
        try:
            return run_dataset(
                plan, number, meter, settings=settings, stopped=stopped, on_cell=log.add
            )
        except BudgetError as error:
            log.stopped = str(error)
            return True

    if not await watch.run(work, log, meter):
        raise interruption()
    return {"done": log.done, "stopped": log.stopped}


@step("spanlab.bench.finish")
async def _finish(request: dict[str, Any]) -> None:
    await asyncio.to_thread(finish_table, BenchPlan.model_validate(request))


@dataclass
class _CellLog:
    """How many cells a step has finished; written by its thread, read by the worker's loop."""

    before: RunProgress
    done: int
    failed: int = 0
    stopped: str | None = None
    _reported: RunProgress = field(default_factory=RunProgress)

    def add(self, _row: str, failed: int) -> None:
        """Count a cell."""
        self.done += 1
        self.failed += failed > 0

    def save(self, jobs: job_store.JobStore, job_id: str, meter: Meter) -> None:
        """Save the progress with the job if it has changed since it was last saved."""
        usage: Usage = self.before.usage + meter.usage
        failed = self.before.failed + self.failed
        progress = replace(
            self.before, done=self.done, failed=failed, usage=usage, stopped=self.stopped
        )
        if progress != self._reported:
            jobs.report(job_id, progress)
            self._reported = progress


def same(under_way: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Say whether a benchmark under way fills the same folder as another one."""
    return bool(under_way["output"] == request["output"])

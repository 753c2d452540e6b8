"""A limit on calls a minute holds for a job, however many workers are at it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable

import pytest
from model_server import ModelServer
from pydantic import ValidationError
from working_jobs import SECONDS, fill, states, wait_until
from working_jobs import request as asking

from spanlab import jobs
from spanlab.jobs import JobState, database
from spanlab.jobs.turns import Turns
from spanlab.schema import Status
from spanlab.settings import Settings

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.mark.parametrize("kept_in", ["settings", "shared_settings"], ids=["sqlite", "postgresql"])
def test_whoever_makes_the_calls_they_take_turns(
    kept_in: str, request: pytest.FixtureRequest
) -> None:
    where: Settings = request.getfixturevalue(kept_in)
    database.prepare(where)
    # 3,000 a minute are 50 a second: 60 turns of two workers take 59 / 50 = 1.18 s.
    workers = [Turns(where, "a-job", 3000) for _ in range(2)]
    at: list[float] = []

    async def call(worker: Turns) -> None:
        await worker.wait()
        at.append(time.monotonic())

    async def everything() -> None:
        await asyncio.gather(*(call(each) for each in workers for _ in range(30)))

    began = time.monotonic()
    asyncio.run(everything())
    assert len(at) == 60
    assert max(at) - began >= 1.18


def test_a_job_keeps_its_rate(settings: Settings, model: ModelServer, worker: Start) -> None:
    fill(settings, 40)
    worker(settings)
    # 1,200 a minute are 20 a second: 40 calls begin over 39 / 20 = 1.95 s.
    job_id = jobs.submit_detection(asking(model, rate=1200), settings)
    done = jobs.wait(job_id, timeout=SECONDS, settings=settings)
    assert (done.state, done.progress.done) == (JobState.DONE, 40)
    assert done.started is not None
    assert model.count == 40
    assert max(ask.at for ask in model.requests) - done.started.timestamp() >= 1.95
    assert states(settings) == {Status.DONE: 40}


def test_a_slow_job_is_paused_at_once_and_nothing_counts_as_failed(
    settings: Settings, model: ModelServer, worker: Start
) -> None:
    fill(settings, 40)
    worker(settings)
    # 12 a minute: seven of the eight that are at work wait for their turn, 35 s all together.
    job_id = jobs.submit_detection(asking(model, rate=12), settings)
    wait_until(lambda: states(settings).get(Status.DONE, 0) >= 1, "the first call")
    jobs.pause(job_id, settings)
    fast = jobs.submit_detection(asking(model), settings)
    done = jobs.wait(fast, timeout=SECONDS, settings=settings)
    assert (done.progress.failed, done.progress.usage.failed) == (0, 0)
    assert states(settings) == {Status.DONE: 40}
    assert model.count <= 40 + 1
    paused = jobs.job(job_id, settings)
    assert (paused.state, paused.progress.failed) == (JobState.PAUSED, 0)
    assert paused.progress.usage.failed == 0
    assert paused.progress.stopped is None


@pytest.mark.parametrize("rate", [0, -1, 2_000_000], ids=["none", "negative", "beyond reason"])
def test_a_rate_is_above_zero_and_within_reason(model: ModelServer, rate: float) -> None:
    with pytest.raises(ValidationError):
        asking(model, rate=rate)

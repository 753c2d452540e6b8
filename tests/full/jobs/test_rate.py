"""A limit on calls a minute holds for a job, however many workers are at it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gold_answers import GoldAnswers, better_when_asked
from pydantic import ValidationError
from sqlalchemy import text
from working_jobs import SECONDS, Process, fill, states, wait_until
from working_jobs import request as asking

from optimizers.request import Optimisation, PromptSearch
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.formats import read
from spanlab.jobs import Jobs, JobState, database
from spanlab.jobs.rate_limiter import RateLimiter
from spanlab.models import ModelChoice
from spanlab.schema import Record, Status
from spanlab.storage import Store
from spanlab.testing import ModelServer

Start = Callable[..., Process]


@pytest.fixture
def labelled(samples: Path) -> list[Record]:
    """A few samples with gold labels."""
    return [record for record in read(samples) if record.item.lang == "en"]


@pytest.fixture
def gold(labelled: list[Record]) -> Iterator[ModelServer]:
    """A model that rewards good prompts."""
    with ModelServer(GoldAnswers(labelled, noise=better_when_asked()), latency=0.01) as served:
        yield served


@pytest.mark.parametrize("kept_in", ["settings", "shared_settings"], ids=["sqlite", "postgresql"])
def test_the_calls_of_all_workers_are_spaced_evenly(
    kept_in: str, request: pytest.FixtureRequest
) -> None:
    where: Settings = request.getfixturevalue(kept_in)
    database.prepare(where)
    # 3,000 a minute are 50 a second: 60 calls of two workers take 59 / 50 = 1.18 s.
    workers = [RateLimiter(where, "a-job", 3000) for _ in range(2)]
    at: list[float] = []

    async def call(worker: RateLimiter) -> None:
        await worker.wait(lambda: None)
        at.append(time.monotonic())

    async def everything() -> None:
        await asyncio.gather(*(call(each) for each in workers for _ in range(30)))

    began = time.monotonic()
    asyncio.run(everything())
    assert len(at) == 60
    assert max(at) - began >= 1.18


@pytest.mark.parametrize("kept_in", ["settings", "shared_settings"], ids=["sqlite", "postgresql"])
def test_a_clock_that_is_set_back_an_hour_holds_no_call_up(
    kept_in: str, request: pytest.FixtureRequest
) -> None:
    """The next call is then noted an hour ahead; it is made as if none had been noted.

    Nothing else waits by the clock: leases are locks, and answers expire by their age in days.
    Jobs and lines of logs that come after the change stand before what they follow in lists.
    """
    where: Settings = request.getfixturevalue(kept_in)
    database.prepare(where)
    limiter, looks = RateLimiter(where, "a-job", 600), itertools.count()
    asyncio.run(limiter.wait(lambda: None))
    schema = "" if database.is_sqlite(where) else f"{database.SCHEMA}."
    with database.connection(where) as connection:
        connection.execute(text(f"UPDATE {schema}next_calls SET at = at + 3600"))
    again = RateLimiter(where, "a-job", 600)
    asyncio.run(again.wait(lambda: "still waiting" if next(looks) > 200 else None))


def test_a_job_keeps_its_rate(settings: Settings, model: ModelServer, worker: Start) -> None:
    fill(settings, 40)
    worker(settings)
    # 1,200 a minute are 20 a second: 40 calls begin over 39 / 20 = 1.95 s.
    job_id = Jobs(settings).submit(asking(model, rate=1200))
    done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
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
    # 3 a minute: seven of the eight that are at work wait for their turn, 140 s all together.
    job_id = Jobs(settings).submit(asking(model, rate=3))
    wait_until(lambda: states(settings).get(Status.DONE, 0) >= 1, "the first call")
    Jobs(settings).pause(job_id)
    fast = Jobs(settings).submit(asking(model))
    done = Jobs(settings).store.wait(fast, timeout=SECONDS)
    assert (done.progress.failed, done.progress.usage.failed) == (0, 0)
    assert states(settings) == {Status.DONE: 40}
    assert model.count <= 40 + 1
    paused = Jobs(settings).find(job_id)
    assert (paused.state, paused.progress.failed) == (JobState.PAUSED, 0)
    assert paused.progress.usage.failed == 0
    assert paused.progress.stopped is None


def test_an_optimisation_keeps_its_rate_and_is_paused_while_it_waits(
    settings: Settings, gold: ModelServer, labelled: list[Record], worker: Start
) -> None:
    worker(settings)
    with Store.open(settings) as store:
        store.import_records("d", labelled)
    # 1,200 a minute are 20 a second, though eight threads wait: n calls take (n - 1) / 20 s.
    done = Jobs(settings).store.wait(_tuned(settings, gold, rate=1200), timeout=SECONDS)
    assert done.state is JobState.DONE, done.error
    assert done.started is not None
    assert gold.count >= 30
    took = max(ask.at for ask in gold.requests) - done.started.timestamp()
    assert took >= (gold.count - 1) / 20 - 0.5  # calls are reserved half a second ahead

    # 2 a minute: all threads but one wait for their turn when it is paused.
    asked = gold.count
    slow = _tuned(settings, gold, name="slow", seed=10, rate=2)
    wait_until(lambda: gold.count > asked, "the first call")
    Jobs(settings).pause(slow)
    fast = _tuned(settings, gold, name="fast", seed=11, rate=None)
    assert Jobs(settings).store.wait(fast, timeout=SECONDS).state is JobState.DONE
    paused = Jobs(settings).find(slow)
    assert (paused.state, paused.progress.usage.failed) == (JobState.PAUSED, 0)


def _tuned(settings: Settings, gold: ModelServer, **more: object) -> str:
    choice = ModelChoice(model="scripted", base_url=gold.url, retries=0)
    spec = DetectorSpec(detector="ucsc-extract", model=choice)
    fields = {"name": "tuned", "detector": spec, "auto": None, "trials": 2, "folds": 0, **more}
    rate = fields.pop("rate")
    search = PromptSearch.model_validate(fields)
    return Jobs(settings).submit(
        Optimisation.model_validate({"dataset": "d", "search": search, "rate": rate})
    )


@pytest.mark.parametrize("rate", [0, -1, 2_000_000], ids=["none", "negative", "beyond reason"])
def test_a_rate_is_above_zero_and_within_reason(model: ModelServer, rate: float) -> None:
    with pytest.raises(ValidationError):
        asking(model, rate=rate)

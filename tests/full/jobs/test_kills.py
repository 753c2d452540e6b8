"""Workers that are killed, alone and among others: nothing is lost, and little repeated."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

from paid import again_after_kills, killed, signed
from working_jobs import (
    NOTHING,
    SECONDS,
    Process,
    fill,
    request,
    states,
    wait_until,
    wait_until_ready,
    working,
)

from spanlab.base.settings import Settings
from spanlab.jobs import Jobs, JobState, job_store
from spanlab.schema import Status
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of
from spanlab.testing import ModelServer, say

Start = Callable[..., Process]
STORED = Path(__file__).parent / "stored"  # what 1.0.0 left of a job that was paused


def repeated(model: ModelServer) -> int:
    """Return how many requests asked what had been asked before."""
    return sum(count - 1 for count in Counter(model.fingerprints()).values())


def has_asked(model: ModelServer, calls: int) -> bool:
    """Say whether so many calls have come in."""
    return model.count >= calls


def test_a_killed_worker_leaves_a_job_that_the_next_one_finishes(
    settings: Settings, model: ModelServer
) -> None:
    model.latency = 0.2  # so that a kill finds it at work
    fill(settings, 80)
    job_id = Jobs(settings).submit(request(model))
    model.script(signed(lambda ask: say(NOTHING)))
    kills = []
    for calls in (20, 50):
        with working(settings, "w") as process:
            wait_until(partial(has_asked, model, calls), f"{calls} calls")
            kills.append(killed(process, settings.home, model))
    with working(settings, "another"):
        done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done) == (JobState.DONE, 80)
    assert states(settings) == {Status.DONE: 80}
    again = again_after_kills(model, kills, settings.home)
    assert len(again) == repeated(model) <= 2 * 8  # what was under way at each kill
    assert again.known == 0
    assert "w stopped; the job is queued again" in {line.text for line in done.log}


def test_workers_share_a_job_and_outlive_one_of_them(
    shared_settings: Settings, model: ModelServer, worker: Start
) -> None:
    model.latency = 0.2
    fill(shared_settings, 160)
    first, _ = (worker(shared_settings, name) for name in ("first", "second"))
    wait_until_ready(shared_settings, "first", "second")
    job_id = Jobs(shared_settings).submit(request(model))
    where = job_store.shared_job_store(shared_settings)

    def at_work() -> set[str | None]:
        return {row.executor_id for row in where.rows(parent_workflow_id=job_id)}

    wait_until(lambda: {"first", "second"} <= at_work(), "both to have begun")
    first.kill()
    first.wait()
    done = Jobs(shared_settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done) == (JobState.DONE, 160)
    assert states(shared_settings) == {Status.DONE: 160}
    assert repeated(model) <= 8
    assert any(line.text.startswith("first stopped; ") for line in done.log)


def test_a_worker_that_is_told_to_end_hands_its_work_back(
    settings: Settings, model: ModelServer
) -> None:
    model.latency = 0.3  # it is told when a second's work is left
    fill(settings, 80)
    job_id = Jobs(settings).submit(request(model))
    with working(settings, "w", inside=["env"]):  # the installed command, from start to end
        wait_until(lambda: model.count >= 20, "20 calls")
    assert Jobs(settings).find(job_id).state is JobState.QUEUED
    with working(settings, "w"):
        done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done) == (JobState.DONE, 80)
    assert repeated(model) == 0


def offline_annotations(settings: Settings) -> dict[str, str]:
    """Return what ``offline`` has said of items, as JSON by their ids."""
    with Store.open(settings) as store:
        pairs = [(record.item.id, record.by("offline")) for record in store.records("d")]
    return {name: said.model_dump_json() for name, said in pairs if said is not None}


def test_a_job_that_1_0_0_stored_is_resumed_where_it_was_paused(
    settings: Settings, worker: Start
) -> None:
    """Its files: 80 items, of which ``offline`` had done 24 in three parts when it was paused."""
    for file in STORED.iterdir():
        (settings.home / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
    before = offline_annotations(settings)
    assert len(before) == 24
    (paused,) = Jobs(settings).list()
    assert (paused.state, paused.progress.done, paused.progress.total) == (JobState.PAUSED, 24, 80)
    worker(settings)
    Jobs(settings).resume(paused.id)
    done = Jobs(settings).store.wait(paused.id, timeout=SECONDS)
    assert (done.state, done.progress.done, done.progress.failed) == (JobState.DONE, 80, 0)
    assert states(settings, "offline") == {Status.DONE: 80}
    assert before.items() <= offline_annotations(settings).items()
    with Store.open(settings) as store:
        setups = summary_of(store, "d").settings.setups
    assert [setup.version for setup in setups] == ["1.0.0", version("spanlab")]
    said = "24 items that offline has finished: annotated by spanlab 1.0.0, and stay so"
    assert sum(said in line.text for line in done.log) == 1

"""Workers whose host loses the network, or whose database is away: what is lost, what asked twice.

Every worker reaches PostgreSQL, and in the first test the model too, through a cable of its own
that can be pulled. The bench with hosts in network namespaces does the same where it may.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from cable import Cable
from gold_answers import GoldAnswers, better_when_asked
from paid import put_away_for_all, signed
from postgres import Cluster
from sqlalchemy import make_url
from working_jobs import (
    NOTHING,
    QUICK,
    SECONDS,
    fill,
    key_of,
    request,
    states,
    wait_until,
    wait_until_ready,
    working,
)

from optimizers.request import Optimisation, PromptSearch
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.formats import read
from spanlab.jobs import Jobs, JobState, job_store
from spanlab.models import ModelChoice
from spanlab.schema import Status
from spanlab.storage import Store
from spanlab.testing import ModelRequest, ModelServer, caller_with, say

AT_ONCE = 8


@pytest.fixture
def cable(server: Cluster) -> Iterator[Cable]:
    """The way of a worker to PostgreSQL."""
    with Cable.to_socket(f"{server.folder}/.s.PGSQL.5432") as cable:
        yield cable


@pytest.fixture
def model_cable(model: ModelServer) -> Iterator[Cable]:
    """Its way to the model."""
    with Cable.to_port(model.port) as cable:
        yield cable


def through(cable: Cable, settings: Settings, home: Path) -> Settings:
    """Return the settings of a host of its own behind a cable."""
    home.mkdir()
    url = make_url(settings.database_url)
    url = url.set(host="127.0.0.1", port=cable.port, query={})
    return Settings(home=home, database_url=url.render_as_string(hide_password=False))


def by(model: ModelServer, name: str) -> dict[str, list[ModelRequest]]:
    """Return a worker's requests by what they ask."""
    asked: dict[str, list[ModelRequest]] = defaultdict(list)
    for ask in model.requests:
        if ask.caller == caller_with(key_of(name)):
            asked[ask.fingerprint].append(ask)
    return asked


def at_work(name: str, job_id: str, where: job_store.JobStore) -> bool:
    """Say whether a worker has a job or a part of it in its hands."""
    rows = [where.part(job_id), *where.rows(parent_workflow_id=job_id)]
    return any((row.status, row.executor_id) == ("PENDING", name) for row in rows)


def is_silent(model: ModelServer) -> bool:
    """Say whether a model is asked nothing for a while, in which each worker would ask."""
    asked = model.count
    time.sleep(1.5)
    return model.count == asked


def test_a_host_that_is_cut_off_and_returns_loses_nothing_and_asks_little_twice(
    shared_settings: Settings, model: ModelServer, cable: Cable, model_cable: Cable, tmp_path: Path
) -> None:
    model.latency = 0.1
    model.script(signed(lambda ask: say(NOTHING)))
    fill(shared_settings, 340)
    far = through(cable, shared_settings, tmp_path / "far")
    near = shared_settings.model_copy(update={"home": tmp_path / "near"})
    near.home.mkdir()
    where = job_store.shared_job_store(shared_settings)
    proxy = {"http_proxy": f"http://127.0.0.1:{model_cable.port}", "no_proxy": ""}
    with working(far, "far", environ=proxy), working(near, "near"):
        wait_until_ready(far, "far")
        wait_until_ready(near, "near")
        job_id = Jobs(shared_settings).submit(request(model, concurrency=AT_ONCE))
        wait_until(lambda: len(by(model, "far")) >= 80, "calls of both workers")
        with cable.pulled(), model_cable.pulled():
            known = put_away_for_all(shared_settings)
            time.sleep(QUICK.sure + 1)  # PostgreSQL waits longer, eleven seconds
            cable.give_up()
            wait_until(lambda: not at_work("far", job_id, where), "the other to take over")
        back = time.time()
        done = Jobs(shared_settings).store.wait(job_id, timeout=SECONDS)
        assert (done.state, done.progress.done, done.progress.failed) == (JobState.DONE, 340, 0)
        assert states(shared_settings) == {Status.DONE: 340}
        wait_until(lambda: "far reconnected" in (far.home / "far.log").read_text(), "its return")

    ours, others = by(model, "far"), by(model, "near")
    assert all(len(asks) == 1 for asks in (*ours.values(), *others.values()))
    # What was known to the other worker at the cut, that did not ask again.
    told = [asks[0] for asks in ours.values() if asks[0].number in known]
    assert len(told) > 30
    assert not [ask for ask in told if ask.fingerprint in others]
    # Since its return it has asked nothing that the other one had: only what was in the cable came.
    late = [asks[0] for asks in ours.values() if asks[0].at >= back]
    assert len([ask for ask in late if ask.fingerprint in others]) <= AT_ONCE


def test_a_worker_whose_database_is_silent_stops_asking_and_goes_on_when_it_is_back(
    shared_settings: Settings, model: ModelServer, cable: Cable, tmp_path: Path
) -> None:
    model.latency = 0.5  # what it has in hand lasts for four seconds, longer than it is sure
    fill(shared_settings, 64)
    far = through(cable, shared_settings, tmp_path / "far")
    with working(far, "far"):
        job_id = Jobs(shared_settings).submit(request(model, concurrency=AT_ONCE))
        wait_until(lambda: model.count >= AT_ONCE, "the first calls")
        with cable.pulled():
            time.sleep(QUICK.sure + 0.5)
            wait_until(lambda: is_silent(model), "it to stop asking")
            assert model.count < 64
        done = Jobs(shared_settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done) == (JobState.DONE, 64)
    assert states(shared_settings) == {Status.DONE: 64}
    assert all(len(asks) == 1 for asks in by(model, "far").values())


def test_a_search_goes_on_when_its_database_has_started_anew(
    shared_settings: Settings, cable: Cable, samples: Path, tmp_path: Path
) -> None:
    labelled = [record for record in read(samples) if record.item.lang == "en"]
    with Store.open(shared_settings) as store:
        store.import_records("d", labelled)
    far = through(cable, shared_settings, tmp_path / "far")
    script = GoldAnswers(labelled, noise=better_when_asked())
    with ModelServer(script, latency=0.1) as gold, working(far, "far"):
        choice = ModelChoice(model="scripted", base_url=gold.url)
        spec = DetectorSpec(detector="ucsc-extract", model=choice)
        search = PromptSearch(name="tuned", detector=spec, auto=None, trials=3, folds=0)
        asked = Optimisation(dataset="d", search=search)
        job_id = Jobs(shared_settings).submit(asked)
        wait_until(lambda: gold.count >= 30, "some calls")
        with cable.pulled():
            cable.give_up()
        done = Jobs(shared_settings).store.wait(job_id, timeout=SECONDS)
    assert done.state is JobState.DONE, done.error
    assert done.search is not None
    assert done.search.program == "tuned"
    assert done.progress.usage.failed == 0


def test_a_database_that_starts_anew_costs_nothing(
    shared_settings: Settings, model: ModelServer, cable: Cable, tmp_path: Path
) -> None:
    model.latency = 0.1
    fill(shared_settings, 200)
    far = through(cable, shared_settings, tmp_path / "far")
    with working(far, "far"):
        job_id = Jobs(shared_settings).submit(request(model, concurrency=AT_ONCE))
        wait_until(lambda: model.count >= 50, "fifty calls")
        with cable.pulled():
            cable.give_up()
        done = Jobs(shared_settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done) == (JobState.DONE, 200)
    assert states(shared_settings) == {Status.DONE: 200}
    assert all(len(asks) == 1 for asks in by(model, "far").values())

"""What an equal job under way, and an earlier run with other settings, mean for a new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run_here
from working_jobs import SECONDS, Process, environment, fill, request, wait_until

from spanlab import jobs
from spanlab.base.errors import UnderWayError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.detection.request import RunRequest, request_of
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.detection.submitting import other_settings, submit_detection
from spanlab.jobs import JobState
from spanlab.storage import Store
from spanlab.testing import ModelServer, fail

Start = Callable[..., Process]


def offline(**options: object) -> RunRequest:
    spec = {"detector": "offline"} | options
    return RunRequest(dataset="d", detectors=(DetectorSpec.model_validate(spec),))


def test_what_does_the_same_is_started_twice_only_if_that_is_asked_for(
    where: Settings, model: ModelServer
) -> None:
    fill(where, 4)
    first = submit_detection(request(model), where)
    for same in ({}, {"concurrency": 3, "rate": 9, "budget": {"calls": 5}}, {"limit": 3}):
        with pytest.raises(UnderWayError, match=f"job {first} is already doing this"):
            submit_detection(request(model, **same), where)
    (spec,) = request(model).specs
    assert spec.model is not None
    warm = spec.model.model_copy(update={"temperature": 0.5})
    other = (spec.model_copy(update={"model": warm}),)
    for different in ({"again": True}, {"detectors": other}, {"vote": "all"}):
        submit_detection(request(model, **different), where)
    assert len(jobs.jobs(settings=where)) == 4
    assert submit_detection(request(model), where, again=True) != first
    for view in jobs.jobs(settings=where):
        jobs.cancel(view.id, where)
    submit_detection(request(model), where)


def test_a_failed_job_is_not_tried_again_twice_at_once(
    settings: Settings, model: ModelServer, worker: Start
) -> None:
    fill(settings, 2)
    model.script(lambda ask: fail(401, "no"))
    job_id = submit_detection(request(model), settings)
    process = worker(settings)
    jobs.wait(job_id, timeout=SECONDS, settings=settings)
    process.terminate()
    process.wait()
    second = jobs.retry(job_id, settings)
    with pytest.raises(UnderWayError, match=second):
        jobs.retry(job_id, settings)


def test_a_command_takes_up_what_waits_and_leaves_alone_what_somebody_works_on(
    settings: Settings, model: ModelServer, worker: Start, tmp_path: Path
) -> None:
    fill(settings, 6)
    here = environment(settings) | {"OPENAI_BASE_URL": model.url, "SPANLAB_MODEL": "scripted"}
    asked = request_of("d", specifications(DetectorSelection(detectors=("ucsc-extract",)), here))
    command = ["annotate", "d", "--detector", "ucsc-extract"]
    waiting = submit_detection(asked, settings)
    done = run_here(command, tmp_path, here)
    assert done.returncode == 0, done.stderr
    assert f"continuing job {waiting}, which asks for the same and has waited" in done.stderr
    assert "ucsc-extract annotated 6 items" in done.stderr
    assert [view.id for view in jobs.jobs(settings=settings)] == [waiting]

    fill(settings, 6, first=6)
    model.latency = 3.0  # somebody is at work while the command looks
    worker(settings)
    begun = submit_detection(asked, settings)
    wait_until(lambda: model.count == 12, "the calls to be under way")
    refused = run_here(command, tmp_path, here)
    assert refused.returncode == 2, refused.stderr
    assert f"job {begun} is already doing this" in refused.stderr
    assert f"spanlab jobs show {begun}; --again starts it once more" in refused.stderr
    assert model.count == 12
    assert jobs.wait(begun, timeout=SECONDS, settings=settings).state is JobState.DONE


def test_settings_that_differ_from_those_of_the_last_run_are_named(
    where: Settings, worker: Start
) -> None:
    fill(where, 3)
    with Store.open(where) as store:
        (summary,) = store.datasets()
    asked = offline(context=5000)
    assert other_settings(asked, summary.created, where) == ()
    worker(where)
    done = submit_detection(offline(), where)
    jobs.wait(done, timeout=SECONDS, settings=where)
    assert other_settings(offline(), summary.created, where) == ()
    (other,) = other_settings(asked, summary.created, where)
    assert (other.annotator, other.job_id) == ("offline", done)
    assert other.differences == ("context 5000 (it was 60000)",)
    nothing = submit_detection(asked, where)  # all are done: it says nothing of any item
    jobs.wait(nothing, timeout=SECONDS, settings=where)
    assert other_settings(asked, summary.created, where)[0].job_id == done
    anew = submit_detection(asked.model_copy(update={"again": True}), where)
    assert jobs.wait(anew, timeout=SECONDS, settings=where).progress.done == 3
    assert other_settings(asked, summary.created, where) == ()
    with Store.open(where) as store:
        store.delete_dataset("d")
    fill(where, 3)
    with Store.open(where) as store:
        (summary,) = store.datasets()
    assert other_settings(offline(), summary.created, where) == (), "another dataset's"

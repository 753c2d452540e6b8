"""What an equal job under way, and an earlier run with other settings, mean for a new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run_here
from working_jobs import SECONDS, Process, environment, fill, request, wait_until

from spanlab.base.errors import UnderWayError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.detection.earlier import other_settings
from spanlab.detection.request import RunRequest
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.jobs import Jobs, JobState
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
    first = Jobs(where).submit(request(model))
    for same in ({}, {"concurrency": 3, "rate": 9, "budget": {"calls": 5}}, {"limit": 3}):
        with pytest.raises(UnderWayError, match=f"job {first} is already doing this"):
            Jobs(where).submit(request(model, **same))
    (spec,) = request(model).specs
    assert spec.model is not None
    warm = spec.model.model_copy(update={"temperature": 0.5})
    other = (spec.model_copy(update={"model": warm}),)
    for different in ({"again": True}, {"detectors": other}, {"vote": "all"}):
        Jobs(where).submit(request(model, **different))
    assert len(Jobs(where).list()) == 4
    assert Jobs(where).submit(request(model), again=True) != first
    for view in Jobs(where).list():
        Jobs(where).cancel(view.id)
    Jobs(where).submit(request(model))


def test_a_failed_job_is_not_tried_again_twice_at_once(
    settings: Settings, model: ModelServer, worker: Start
) -> None:
    fill(settings, 2)
    model.script(lambda ask: fail(401, "no"))
    job_id = Jobs(settings).submit(request(model))
    process = worker(settings)
    Jobs(settings).store.wait(job_id, timeout=SECONDS)
    process.terminate()
    process.wait()
    second = Jobs(settings).retry(job_id)
    with pytest.raises(UnderWayError, match=second):
        Jobs(settings).retry(job_id)


def test_a_command_takes_up_what_waits_and_leaves_alone_what_somebody_works_on(
    settings: Settings, model: ModelServer, worker: Start, tmp_path: Path
) -> None:
    fill(settings, 6)
    here = environment(settings) | {"OPENAI_BASE_URL": model.url, "SPANLAB_MODEL": "scripted"}
    asked = RunRequest.of(
        dataset="d", detectors=specifications(DetectorSelection(detectors=("ucsc-extract",)), here)
    )
    command = ["annotate", "d", "--detector", "ucsc-extract"]
    waiting = Jobs(settings).submit(asked)
    done = run_here(command, tmp_path, here)
    assert done.returncode == 0, done.stderr
    assert f"continuing job {waiting}, which asks for the same and has waited" in done.stderr
    assert "ucsc-extract annotated 6 items" in done.stderr
    assert [view.id for view in Jobs(settings).list()] == [waiting]

    fill(settings, 6, first=6)
    model.latency = 3.0  # somebody is at work while the command looks
    worker(settings)
    begun = Jobs(settings).submit(asked)
    wait_until(lambda: model.count == 12, "the calls to be under way")
    refused = run_here(command, tmp_path, here)
    assert refused.returncode == 2, refused.stderr
    assert f"job {begun} is already doing this" in refused.stderr
    assert f"spanlab jobs show {begun}; --again starts it once more" in refused.stderr
    assert model.count == 12
    assert Jobs(settings).store.wait(begun, timeout=SECONDS).state is JobState.DONE


def test_settings_that_differ_from_those_of_the_last_run_are_named(
    where: Settings, worker: Start
) -> None:
    fill(where, 3)
    with Store.open(where) as store:
        (summary,) = store.datasets()
    asked = offline(context=5000)
    assert other_settings(asked, summary.created, where) == ()
    worker(where)
    done = Jobs(where).submit(offline())
    Jobs(where).store.wait(done, timeout=SECONDS)
    assert other_settings(offline(), summary.created, where) == ()
    (other,) = other_settings(asked, summary.created, where)
    assert (other.annotator, other.job_id) == ("offline", done)
    assert other.differences == ("context 5000 (it was 60000)",)
    nothing = Jobs(where).submit(asked)  # all are done: it says nothing of any item
    Jobs(where).store.wait(nothing, timeout=SECONDS)
    assert other_settings(asked, summary.created, where)[0].job_id == done
    anew = Jobs(where).submit(asked.model_copy(update={"again": True}))
    assert Jobs(where).store.wait(anew, timeout=SECONDS).progress.done == 3
    assert other_settings(asked, summary.created, where) == ()
    with Store.open(where) as store:
        store.delete_dataset("d")
    fill(where, 3)
    with Store.open(where) as store:
        (summary,) = store.datasets()
    assert other_settings(offline(), summary.created, where) == (), "another dataset's"

"""Jobs waited for, paused, cancelled, retried; and earlier ones that ask the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import ValidationError

from spanlab.detectors import DetectorSpec
from spanlab.errors import SpanlabError, UnderWayError, UsageError
from spanlab.jobs import database, job_store
from spanlab.jobs.job_store import JOBS, OPEN, PARTS, JobStore
from spanlab.jobs.steps import queue_for
from spanlab.jobs.summary import progress_in_words
from spanlab.jobs.views import KINDS, JobState, JobView, Kind
from spanlab.settings import Settings
from spanlab.workflows.detection.request import RunRequest
from spanlab.workflows.detection.setup import covers, differences, settings_of

_EVERY = 0.4  # seconds between two looks at a job that is waited for
_OPEN = {JobState.QUEUED, JobState.RUNNING}


def pause(job_id: str, settings: Settings | None) -> None:
    """See ``spanlab.jobs.pause``."""
    _stop(job_store.of(settings), job_id, "pause")


def cancel(job_id: str, settings: Settings | None) -> None:
    """See ``spanlab.jobs.cancel``."""
    _stop(job_store.of(settings), job_id, "cancel")


def resume(job_id: str, settings: Settings | None) -> None:
    """See ``spanlab.jobs.resume``."""
    requeue(job_store.of(settings), job_id, JOBS, PARTS)


def requeue(where: JobStore, job_id: str, jobs_queue: str, parts_queue: str) -> str:
    """Queue a job that nobody works on, and what is left of its parts; returns its full id."""
    view = where.job(job_id)
    if view.state not in {JobState.PAUSED, JobState.CANCELLED, JobState.QUEUED}:
        raise UsageError(f"job {view.id} is {view.state}: only a paused or cancelled one resumes")
    asked = _asked(view)
    queues = (queue_for(asked, jobs_queue), queue_for(asked, parts_queue))
    where.say(view.id, stop=None, wish=None)
    where.note(view.id, "resumed")
    move(where, view.id, *queues)
    return view.id


def move(where: JobStore, job_id: str, jobs_queue: str, parts_queue: str) -> None:
    """Queue a job anew, and those of its parts that are not over."""
    over = {"SUCCESS", "ERROR"}
    rows = where.rows(parent_workflow_id=job_id)
    parts = [row.workflow_id for row in rows if row.status not in over]
    if parts:
        where.resume(parts, parts_queue)
    where.resume([job_id], jobs_queue)


def retry(job_id: str, settings: Settings | None) -> str:
    """See ``spanlab.jobs.retry``."""
    where = job_store.of(settings)
    return repeat(where, job_id, JOBS)


def repeat(where: JobStore, job_id: str, queue: str) -> str:
    """Submit the request of a job that is over once more; returns the new job's id."""
    view = where.job(job_id)
    if not view.is_over:
        raise UsageError(f"job {view.id} is {view.state}: only one that is over can be retried")
    request = _asked(view)
    if view.kind != "optimise":  # whose request knows no failed items
        request["retry_failed"] = True
    request.pop("again", None)
    refuse_same(where, view.kind, request)
    return where.submit(view.kind, view.title, request, queue_for(request, queue))


def _asked(view: JobView) -> dict[str, Any]:
    """Return the request of a job as JSON."""
    if view.request is None:
        raise SpanlabError(view.error or f"job {view.id} does not say what it was asked")
    return dict(view.request)


def wait(
    job_id: str,
    *,
    timeout: float | None,
    on_progress: Callable[[JobView], None] | None,
    settings: Settings | None,
) -> JobView:
    """See ``spanlab.jobs.wait``."""
    where = job_store.of(settings)
    deadline = None if timeout is None else time.monotonic() + timeout
    view = where.job(job_id)
    while True:
        if view.state not in _OPEN:
            view = where.job(view.id)  # with failures and log
        if on_progress is not None:
            on_progress(view)
        if view.state not in _OPEN:
            return view
        database.check_space(where.settings)
        if deadline is not None and time.monotonic() > deadline:
            raise SpanlabError(f"job {view.id} is still {view.state} after {timeout:g} seconds")
        time.sleep(_EVERY)
        view = where.named([view.id]).get(view.id, view)


def _stop(where: JobStore, job_id: str, what: Literal["pause", "cancel"]) -> None:
    view = where.job(job_id)
    allowed = _OPEN if what == "pause" else {*_OPEN, JobState.PAUSED}
    if view.state not in allowed:
        raise UsageError(f"job {view.id} is {view.state}: there is nothing to {what}")
    where.say(view.id, stop=what, wish=None)
    where.note(view.id, "paused" if what == "pause" else "cancelled")
    where.stop(view.id)


_PAGE = 50
_LOOK_BACK = 200  # jobs among which the last run of a detector is looked for


@dataclass(frozen=True)
class OtherSettings:
    """A detector's last run on a dataset, which was asked otherwise than one is now.

    ``differences`` are clauses, such as "calibration learnt.json (it was none)".
    """

    annotator: str
    job_id: str
    at: datetime
    differences: tuple[str, ...]


def refuse_same(where: JobStore, kind: Kind, asked: Mapping[str, Any]) -> None:
    """Refuse a request if a job under way does all that it asks: it would be paid for twice.

    Raises:
        UnderWayError: one does.
    """
    for row in where.rows(name=KINDS[kind].workflow, status=OPEN, load_input=True):
        view = where.view(row)
        with suppress(ValidationError):  # a request of another version
            if view.request is not None and _SAME[kind](view.request, asked):
                raise UnderWayError(
                    f"job {view.id} does just that already ({view.title}: "
                    f"{progress_in_words(view)}); see: spanlab jobs show {view.id}",
                    view.id,
                )


def _same_run(under_way: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    return covers(RunRequest.model_validate(under_way), RunRequest.model_validate(asked))


def _same_search(under_way: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    from optimizers.request import Optimisation

    one, other = map(Optimisation.model_validate, (under_way, asked))
    left_out = {"name", "threads", "detector", "prompt_model"}
    return (
        one.dataset == other.dataset
        and one.search.model_dump(exclude=left_out) == other.search.model_dump(exclude=left_out)
        and settings_of(one.search.detector) == settings_of(other.search.detector)
        and _writer(one.search.prompt_model) == _writer(other.search.prompt_model)
    )


def _writer(model: Any) -> object:
    return None if model is None else settings_of(DetectorSpec(detector="prompts", model=model))


def _same_folder(under_way: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    return bool(under_way["output"] == asked["output"])


_SAME = {"detect": _same_run, "optimise": _same_search, "bench": _same_folder}


def other_settings(
    where: JobStore, request: RunRequest, created: datetime
) -> tuple[OtherSettings, ...]:
    """Say which of a request's detectors were last run on its dataset with other settings.

    Args:
        where: the jobs.
        request: what is asked for.
        created: when the dataset was made; an earlier one may have had its name.

    Returns:
        Those detectors; not one of whose runs nothing is known, such as an imported annotator.
    """
    wanted = {spec.signs: spec for spec in request.specs}
    changed: list[OtherSettings] = []
    for view, run in _runs(where, request.dataset, created):
        for before in run.specs:
            now = wanted.pop(before.signs, None)
            if now is not None and (clauses := differences(before, now)):
                changed.append(OtherSettings(now.signs, view.id, view.created, clauses))
        if not wanted:
            break
    return tuple(changed)


def _runs(where: JobStore, dataset: str, created: datetime) -> Iterator[tuple[JobView, RunRequest]]:
    """Yield the runs that have finished items of a dataset, the newest first."""
    for first in range(0, _LOOK_BACK, _PAGE):
        page = where.jobs(_PAGE, first)
        for view in page:
            done = view.progress.done - view.progress.failed
            if view.kind != "detect" or view.request is None or done <= 0:
                continue
            with suppress(ValidationError):
                request = RunRequest.model_validate(view.request)
                begun = view.started or view.created  # on SQLite that is cut off to seconds
                if request.dataset == dataset and begun >= created:
                    yield view, request
        if len(page) < _PAGE:
            return

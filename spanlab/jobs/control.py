"""Wait for jobs, pause, cancel and retry them; refuse a job that does what another one does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pkgutil import resolve_name
from typing import Any, Literal

from pydantic import ValidationError

from spanlab.errors import SpanlabError, UnderWayError, UsageError
from spanlab.jobs import database, job_store
from spanlab.jobs.job_store import JOBS, OPEN, PARTS, JobStore
from spanlab.jobs.steps import queue_for
from spanlab.jobs.summary import progress_in_words
from spanlab.jobs.views import KINDS, JobState, JobView
from spanlab.settings import Settings
from spanlab.workflows.detection.request import RunRequest
from spanlab.workflows.detection.setup import differences

_EVERY = 0.4  # seconds between two looks at a job that is waited for
_OPEN = {JobState.QUEUED, JobState.RUNNING}


def pause(job_id: str, settings: Settings | None) -> None:
    """See ``spanlab.jobs.pause``."""
    _stop(job_store.shared_job_store(settings), job_id, "pause")


def cancel(job_id: str, settings: Settings | None) -> None:
    """See ``spanlab.jobs.cancel``."""
    _stop(job_store.shared_job_store(settings), job_id, "cancel")


def resume(job_id: str, settings: Settings | None) -> None:
    """See ``spanlab.jobs.resume``."""
    requeue(job_store.shared_job_store(settings), job_id, JOBS, PARTS)


def requeue(jobs: JobStore, job_id: str, jobs_queue: str, parts_queue: str) -> str:
    """Queue a job that nobody works on, and what is left of its parts; returns its full id."""
    view = jobs.job(job_id)
    if view.state not in {JobState.PAUSED, JobState.CANCELLED, JobState.QUEUED}:
        raise UsageError(f"job {view.id} is {view.state}: only a paused or cancelled one resumes")
    request = _request_of(view)
    jobs_queue, parts_queue = queue_for(request, jobs_queue), queue_for(request, parts_queue)
    jobs.set_attributes(view.id, stop=None, wish=None)
    jobs.note(view.id, "resumed")
    move(jobs, view.id, jobs_queue, parts_queue)
    return view.id


def move(jobs: JobStore, job_id: str, jobs_queue: str, parts_queue: str) -> None:
    """Queue a job anew, and those of its parts that are not over."""
    over = {"SUCCESS", "ERROR"}
    rows = jobs.rows(parent_workflow_id=job_id)
    parts = [row.workflow_id for row in rows if row.status not in over]
    if parts:
        jobs.resume(parts, parts_queue)
    jobs.resume([job_id], jobs_queue)


def retry(job_id: str, settings: Settings | None) -> str:
    """See ``spanlab.jobs.retry``."""
    jobs = job_store.shared_job_store(settings)
    return repeat(jobs, job_id, JOBS)


def repeat(jobs: JobStore, job_id: str, queue: str) -> str:
    """Submit the request of a job that is over once more; returns the new job's id."""
    view = jobs.job(job_id)
    if not view.is_over:
        raise UsageError(f"job {view.id} is {view.state}: only one that is over can be retried")
    request = _request_of(view)
    if view.kind != "optimise":  # whose request knows no failed items
        request["retry_failed"] = True
    request.pop("again", None)
    refuse_same(jobs, view.kind, request)
    return jobs.submit(view.kind, view.title, request, queue_for(request, queue))


def _request_of(view: JobView) -> dict[str, Any]:
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
    jobs = job_store.shared_job_store(settings)
    deadline = None if timeout is None else time.monotonic() + timeout
    view = jobs.job(job_id)
    while True:
        if view.state not in _OPEN:
            view = jobs.job(view.id)  # with failures and log
        if on_progress is not None:
            on_progress(view)
        if view.state not in _OPEN:
            return view
        database.check_space(jobs.settings)
        if deadline is not None and time.monotonic() > deadline:
            raise SpanlabError(f"job {view.id} is still {view.state} after {timeout:g} seconds")
        time.sleep(_EVERY)
        view = jobs.jobs_by_id([view.id]).get(view.id, view)


def _stop(jobs: JobStore, job_id: str, action: Literal["pause", "cancel"]) -> None:
    view = jobs.job(job_id)
    allowed = _OPEN if action == "pause" else {*_OPEN, JobState.PAUSED}
    if view.state not in allowed:
        raise UsageError(f"job {view.id} is {view.state}: there is nothing to {action}")
    jobs.set_attributes(view.id, stop=action, wish=None)
    jobs.note(view.id, "paused" if action == "pause" else "cancelled")
    jobs.stop(view.id)


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


def refuse_same(jobs: JobStore, kind: str, request: Mapping[str, Any]) -> None:
    """Refuse a request if a job under way does all that it asks: it would be paid for twice.

    Raises:
        UnderWayError: one does.
    """
    same = resolve_name(KINDS[kind].place)
    for row in jobs.rows(name=KINDS[kind].workflow, status=OPEN, load_input=True):
        view = jobs.view(row)
        with suppress(ValidationError):  # a request of another version
            if view.request is not None and same(view.request, request):
                raise UnderWayError(
                    f"job {view.id} is already doing this ({view.title}: "
                    f"{progress_in_words(view)}); see: spanlab jobs show {view.id}",
                    view.id,
                )


def other_settings(
    jobs: JobStore, request: RunRequest, created: datetime
) -> tuple[OtherSettings, ...]:
    """Say which of a request's detectors were last run on its dataset with other settings.

    Args:
        jobs: the jobs.
        request: what is asked for.
        created: when the dataset was made; an earlier one may have had its name.

    Returns:
        Those detectors; not one of whose runs nothing is known, such as an imported annotator.
    """
    unmatched = {spec.signs: spec for spec in request.specs}
    changed: list[OtherSettings] = []
    for view, run in _runs(jobs, request.dataset, created):
        for earlier in run.specs:
            spec_now = unmatched.pop(earlier.signs, None)
            if spec_now is not None and (clauses := differences(earlier, spec_now)):
                changed.append(OtherSettings(spec_now.signs, view.id, view.created, clauses))
        if not unmatched:
            break
    return tuple(changed)


def _runs(jobs: JobStore, dataset: str, created: datetime) -> Iterator[tuple[JobView, RunRequest]]:
    """Yield the runs that have finished items of a dataset, the newest first."""
    for first in range(0, _LOOK_BACK, _PAGE):
        page = jobs.jobs(_PAGE, first)
        for view in page:
            finished = view.progress.done - view.progress.failed
            if view.kind != "detect" or view.request is None or finished <= 0:
                continue
            with suppress(ValidationError):
                request = RunRequest.model_validate(view.request)
                begun = view.started or view.created  # on SQLite that is cut off to seconds
                if request.dataset == dataset and begun >= created:
                    yield view, request
        if len(page) < _PAGE:
            return

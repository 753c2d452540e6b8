"""Wait for jobs, pause, cancel and retry them; refuse a job that does what another one does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pkgutil import resolve_name
from typing import Any, Literal

from pydantic import ValidationError

from spanlab.base.errors import SpanlabError, UnderWayError, UsageError
from spanlab.jobs import database
from spanlab.jobs.job_store import OPEN, JobStore
from spanlab.jobs.steps import queue_for
from spanlab.jobs.summary import progress_in_words
from spanlab.jobs.views import KINDS, JobState, JobView

_EVERY = 0.4  # seconds between two looks at a job that is waited for
_OPEN = {JobState.QUEUED, JobState.RUNNING}


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
    jobs: JobStore,
    job_id: str,
    timeout: float | None,
    on_progress: Callable[[JobView], None] | None,
) -> JobView:
    """Return a job once it is over or paused; see ``spanlab.jobs.wait``."""
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


def stop(jobs: JobStore, job_id: str, action: Literal["pause", "cancel"]) -> None:
    """Take a job under way, or a paused one to cancel, from all who work on it."""
    view = jobs.job(job_id)
    allowed = _OPEN if action == "pause" else {*_OPEN, JobState.PAUSED}
    if view.state not in allowed:
        raise UsageError(f"job {view.id} is {view.state}: there is nothing to {action}")
    jobs.set_attributes(view.id, stop=action, wish=None)
    jobs.note(view.id, "paused" if action == "pause" else "cancelled")
    jobs.stop(view.id)


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

"""What people do to jobs: pause, resume, cancel, retry, wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

from spanlab.errors import SpanlabError, UsageError
from spanlab.jobs import database, job_store
from spanlab.jobs.earlier import refuse_same
from spanlab.jobs.job_store import JOBS, PARTS, JobStore
from spanlab.jobs.session_keys import queue_for
from spanlab.jobs.views import JobState, JobView
from spanlab.settings import Settings

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
    request = {**_asked(view), "retry_failed": True}
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
    while True:
        view = where.job(job_id)
        if on_progress is not None:
            on_progress(view)
        if view.state not in _OPEN:
            return view
        database.check_space(where.settings)
        if deadline is not None and time.monotonic() > deadline:
            raise SpanlabError(f"job {view.id} is still {view.state} after {timeout:g} seconds")
        time.sleep(_EVERY)


def _stop(where: JobStore, job_id: str, what: Literal["pause", "cancel"]) -> None:
    view = where.job(job_id)
    allowed = _OPEN if what == "pause" else {*_OPEN, JobState.PAUSED}
    if view.state not in allowed:
        raise UsageError(f"job {view.id} is {view.state}: there is nothing to {what}")
    where.say(view.id, stop=what, wish=None)
    where.note(view.id, "paused" if what == "pause" else "cancelled")
    where.stop(view.id)

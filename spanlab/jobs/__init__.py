"""Durable jobs: detection and optimisation that survive restarts and share out among workers.

Jobs are DBOS workflows. What they need to know lies in an SQLite file in spanlab's home, or with
``SPANLAB_DATABASE_URL`` in that PostgreSQL database, where any number of `spanlab worker`
processes on any machines work on them. Nothing here needs a running worker except to wait for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from spanlab.base.errors import SpanlabError, UnderWayError, UsageError
from spanlab.base.settings import Settings
from spanlab.jobs.job_store import JOBS, OPEN, PARTS, shared_job_store
from spanlab.jobs.summary import progress_in_words
from spanlab.jobs.views import KINDS, UNDER_WAY, JobState, JobView, LogLine
from spanlab.schema import OWNER, Actor, Permission, SearchTrial

if TYPE_CHECKING:
    from spanlab.schema.job_request import JobRequest

__all__ = ["JobState", "JobView", "Jobs", "LogLine", "SearchTrial"]


class Jobs:
    """The jobs of a database, for somebody who may administer them.

    ``store`` has them for people who see jobs of their own. Who acts on a job names it by its
    id, or as many of its first characters as no other job's id begins with.

    Args:
        settings: which database; None reads the environment.
        actor: who asks.

    Raises:
        AccessError: they may not.
    """

    def __init__(self, settings: Settings | None = None, actor: Actor = OWNER) -> None:
        actor.require(Permission.ADMINISTER)
        self.store = shared_job_store(settings)

    def list(self, limit: int = 50, page: int = 0) -> Sequence[JobView]:
        """Return a page of jobs, the newest first, without their failures and logs.

        Args:
            limit: jobs on a page, 1 or more.
            page: 0 for the newest ones.

        Returns:
            At most ``limit`` jobs; empty past the end, or if there never was one.
        """
        return self.store.jobs(limit, page * limit)

    def find(self, job_id: str) -> JobView:
        """Return one job with its failures and log.

        Raises:
            NotFoundError: there is no such job, or several begin like this; below, too.
        """
        return self.store.job(job_id)

    def submit(
        self, request: JobRequest, queue: str = JOBS, *, job_id: str = "", again: bool = False
    ) -> str:
        """Queue a job.

        Args:
            request: what to do.
            queue: the queue.
            job_id: the job's id, which no other job has; empty makes one.
            again: whether to start it also if a job under way does the same.

        Returns:
            The job's id. Some worker takes it up; without one it stays queued.

        Raises:
            UnderWayError: a job under way does the same, and ``again`` is not set.
            SpanlabError: it cannot be done; see ``prepared`` of its kind of request.
        """
        if not again:
            self._refuse_same(request.kind, request.model_dump(mode="json"))
        ready = request.prepared(self.store.settings)
        return self._queue(ready.kind, ready.title, ready.model_dump(mode="json"), queue, job_id)

    def pause(self, job_id: str) -> None:
        """Stop a job after the calls that are under way, so that it can be resumed.

        Raises:
            UsageError: it is over already.
        """
        self._stop(job_id, "pause", UNDER_WAY)

    def cancel(self, job_id: str) -> None:
        """End a job after the calls that are under way; what is saved stays.

        Raises:
            UsageError: it is over already.
        """
        self._stop(job_id, "cancel", {*UNDER_WAY, JobState.PAUSED})

    def resume(self, job_id: str, queue: str = "") -> str:
        """Queue a job that nobody works on, and what is left of its parts; it goes on where it was.

        Args:
            job_id: the job.
            queue: for job and parts; empty takes those of all workers.

        Returns:
            The job's whole id.

        Raises:
            UsageError: it runs or is over, or nothing here does jobs of its kind.
        """
        from spanlab.jobs.steps import queue_for  # with DBOS, which takes a second; below, too

        view = self.find(job_id)
        if view.state not in {JobState.PAUSED, JobState.CANCELLED, JobState.QUEUED}:
            words = "only a paused or cancelled one resumes"
            raise UsageError(f"job {view.id} is {view.state}: {words}")
        request = _request_of(view)
        of_job, of_parts = queue_for(request, queue or JOBS), queue_for(request, queue or PARTS)
        self.store.set_attributes(view.id, stop=None, wish=None)
        self.store.note(view.id, "resumed")
        parts = self.store.rows(parent_workflow_id=view.id)
        left = [part.workflow_id for part in parts if part.status not in {"SUCCESS", "ERROR"}]
        self.store.resume(left, of_parts)
        self.store.resume([view.id], of_job)
        return view.id

    def retry(self, job_id: str, queue: str = JOBS) -> str:
        """Queue what a job that is over left undone or failed on, as a new job.

        Returns:
            The new job's id.

        Raises:
            UnderWayError: a job under way does the same.
            UsageError: it is not over yet, or nothing here does jobs of its kind.
        """
        view = self.find(job_id)
        if not view.is_over:
            raise UsageError(f"job {view.id} is {view.state}: only one that is over can be retried")
        request = _request_of(view)
        if "retry_failed" in request:
            request["retry_failed"] = True
        request.pop("again", None)
        self._refuse_same(view.kind, request)
        return self._queue(view.kind, view.title, request, queue)

    def _queue(
        self, kind: str, title: str, request: dict[str, Any], queue: str, job_id: str = ""
    ) -> str:
        from spanlab.jobs.steps import queue_for

        return self.store.submit(kind, title, request, queue_for(request, queue), job_id=job_id)

    def _refuse_same(self, kind: str, request: Mapping[str, Any]) -> None:
        """Refuse a request if a job under way does all that it asks: it would be paid for twice."""
        same = resolve_name(KINDS[kind].place)
        for row in self.store.rows(name=KINDS[kind].workflow, status=OPEN, load_input=True):
            view = self.store.view(row)
            with suppress(ValidationError):  # a request of another version
                if view.request is not None and same(view.request, request):
                    raise UnderWayError(
                        f"job {view.id} is already doing this ({view.title}: "
                        f"{progress_in_words(view)}); see: spanlab jobs show {view.id}",
                        view.id,
                    )

    def _stop(
        self, job_id: str, action: Literal["pause", "cancel"], allowed: set[JobState]
    ) -> None:
        """Take a job from all who work on it."""
        view = self.find(job_id)
        if view.state not in allowed:
            raise UsageError(f"job {view.id} is {view.state}: there is nothing to {action}")
        self.store.set_attributes(view.id, stop=action, wish=None)
        self.store.note(view.id, "paused" if action == "pause" else "cancelled")
        self.store.stop(view.id)


def _request_of(view: JobView) -> dict[str, Any]:
    """Return the request of a job as JSON, for it to be queued again."""
    if view.kind not in KINDS:
        raise UsageError(f"job {view.id} is of the kind {view.kind}, which nothing here does")
    if view.request is None:
        raise SpanlabError(view.error or f"job {view.id} does not say what it was asked")
    return dict(view.request)

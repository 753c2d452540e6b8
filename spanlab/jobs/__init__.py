"""Durable jobs: detection and optimisation that survive restarts and share out among workers.

Jobs are DBOS workflows. What they need to know lies in an SQLite file in spanlab's home, or with
``SPANLAB_DATABASE_URL`` in that PostgreSQL database, where any number of `spanlab worker`
processes on any machines work on them. Nothing here needs a running worker except ``wait``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanlab.base.settings import Settings
from spanlab.jobs import job_store
from spanlab.jobs.views import JobState, JobView, LogLine
from spanlab.schema import OWNER, Actor, Permission, SearchTrial

__all__ = [
    "JobState",
    "JobView",
    "LogLine",
    "SearchTrial",
    "cancel",
    "job",
    "jobs",
    "jobs_by_id",
    "pause",
    "resume",
    "retry",
    "start_embedded_worker",
    "under_way",
    "wait",
]


def jobs(
    limit: int = 50, page: int = 0, settings: Settings | None = None, *, actor: Actor = OWNER
) -> list[JobView]:
    """Return a page of jobs, the newest first, without their failures and logs.

    Args:
        limit: jobs on a page, 1 or more.
        page: 0 for the newest ones.
        settings: which database; None reads the environment, here and below.
        actor: who asks, here and below.

    Returns:
        At most ``limit`` jobs; empty past the end, or if there never was one.
    """
    actor.require(Permission.ADMINISTER)
    return job_store.shared_job_store(settings).jobs(limit, page * limit)


def job(job_id: str, settings: Settings | None = None, *, actor: Actor = OWNER) -> JobView:
    """Return one job with its failures and log.

    Args:
        job_id: the id, or as many of its first characters as no other job's id begins with.
        settings: see ``jobs``.
        actor: see there, too.

    Raises:
        NotFoundError: there is no such job, or several begin like this.
    """
    actor.require(Permission.ADMINISTER)
    return job_store.shared_job_store(settings).job(job_id)


def jobs_by_id(job_ids: Sequence[str], settings: Settings | None = None) -> dict[str, JobView]:
    """Return those jobs that have one of these whole ids, by id, as ``jobs`` does."""
    return job_store.shared_job_store(settings).jobs_by_id(job_ids) if job_ids else {}


def under_way(settings: Settings | None = None) -> list[str]:
    """Return the ids of all jobs that are queued or running, however many."""
    return job_store.shared_job_store(settings).under_way()


def pause(job_id: str, settings: Settings | None = None, *, actor: Actor = OWNER) -> None:
    """Stop a job after the calls that are under way, so that it can be resumed.

    Raises:
        NotFoundError: there is no such job.
        UsageError: it is over already.
    """
    actor.require(Permission.ADMINISTER)
    from spanlab.jobs import control

    control.stop(job_store.shared_job_store(settings), job_id, "pause")


def resume(job_id: str, settings: Settings | None = None, *, actor: Actor = OWNER) -> None:
    """Queue a paused or cancelled job again; it goes on where it was.

    Raises:
        NotFoundError: there is no such job.
        UsageError: it is neither paused nor cancelled.
    """
    actor.require(Permission.ADMINISTER)
    from spanlab.jobs import control

    jobs_queue, parts_queue = job_store.JOBS, job_store.PARTS
    control.requeue(job_store.shared_job_store(settings), job_id, jobs_queue, parts_queue)


def cancel(job_id: str, settings: Settings | None = None, *, actor: Actor = OWNER) -> None:
    """End a job after the calls that are under way; what is saved stays.

    Raises:
        NotFoundError: there is no such job.
        UsageError: it is over already.
    """
    actor.require(Permission.ADMINISTER)
    from spanlab.jobs import control

    control.stop(job_store.shared_job_store(settings), job_id, "cancel")


def retry(job_id: str, settings: Settings | None = None, *, actor: Actor = OWNER) -> str:
    """Queue what a job that is over left undone or failed on, as a new job.

    Returns:
        The new job's id.

    Raises:
        NotFoundError: there is no such job.
        UsageError: it is not over yet.
    """
    actor.require(Permission.ADMINISTER)
    from spanlab.jobs import control

    return control.repeat(job_store.shared_job_store(settings), job_id, job_store.JOBS)


def wait(
    job_id: str,
    *,
    timeout: float | None = None,
    on_progress: Callable[[JobView], None] | None = None,
    settings: Settings | None = None,
) -> JobView:
    """Wait until a job is over or paused.

    Args:
        job_id: see ``job``.
        timeout: seconds; None waits for ever.
        on_progress: called with the job about twice a second.
        settings: see ``jobs``.

    Returns:
        The job as it is then.

    Raises:
        NotFoundError: there is no such job.
        SpanlabError: the time is over and the job is not, or the disk is full.
    """
    from spanlab.jobs import control

    store = job_store.shared_job_store(settings)
    return control.wait(store, job_id, timeout, on_progress)


def start_embedded_worker(settings: Settings | None = None) -> None:
    """Let this process work on jobs in threads of its own; once is enough, and more do no harm.

    It returns at once; what goes wrong while the worker starts is in the process's log.
    """
    from spanlab.jobs import worker

    worker.start_embedded(settings)

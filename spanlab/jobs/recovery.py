"""What a dead worker had begun goes back to the queue, for living ones."""

from __future__ import annotations

from collections.abc import Iterable

from spanlab.jobs.job_store import JOBS, PARTS, JobStore
from spanlab.jobs.kinds import KINDS
from spanlab.jobs.leases import acquire

_OWN = "own."


def own_queue(name: str) -> str:
    """Return the queue of a worker that works alone."""
    return f"{_OWN}{name}"


def requeue_abandoned(where: JobStore, me: str = "") -> None:
    """Queue again what workers had begun that have died: nobody holds their names any more.

    Args:
        where: the jobs.
        me: the name of who asks, who is alive; empty for who is no worker.

    Raises:
        StoreError: the database cannot be reached.
    """
    for name in sorted(_busy(where) - {me}):
        lease = acquire(where.settings, name)
        if lease is None:
            continue
        try:
            requeue(where, name)
        finally:
            lease.release()


def requeue(where: JobStore, name: str) -> None:
    """Queue everything that the worker ``name`` had begun, or kept for itself, for all workers.

    Whoever calls this holds the name.
    """
    begun = where.rows(status="PENDING", executor_id=name, load_output=False)
    kept = where.rows(status="ENQUEUED", queue_name=own_queue(name), load_output=False)
    jobs = {each.workflow for each in KINDS.values()}
    rows = [*begun, *kept]
    _queue(where, (row.workflow_id for row in rows if row.name in jobs), JOBS)
    _queue(where, (row.workflow_id for row in rows if row.name not in jobs), PARTS)
    for row in begun:
        if row.name in jobs:
            where.note(row.workflow_id, f"{name} stopped; the job is queued again")


def _queue(where: JobStore, ids: Iterable[str], queue: str) -> None:
    listed = list(ids)
    if listed:
        where.resume(listed, queue)


def _busy(where: JobStore) -> set[str]:
    """Return who has begun something, or has a queue of its own."""
    rows = where.rows(status="PENDING", load_output=False)
    begun = {row.executor_id for row in rows if row.executor_id}
    return begun | {queue.removeprefix(_OWN) for queue in where.queues() if queue.startswith(_OWN)}

"""What a dead worker was at goes back to the queue, for the living to take up."""

from __future__ import annotations

from collections.abc import Iterable

from spanlab.jobs import places
from spanlab.jobs.board import JOBS, PARTS, Board
from spanlab.jobs.kinds import KINDS

_OWN = "own."


def own_queue(name: str) -> str:
    """Return the queue of a worker that works alone."""
    return f"{_OWN}{name}"


def rescue(where: Board, me: str = "") -> None:
    """Hand back what those workers were at whose names nobody holds any more.

    Args:
        where: the jobs.
        me: the name of who asks, who is alive; empty for who is no worker.

    Raises:
        StoreError: the database cannot be reached.
    """
    for name in sorted(_busy(where) - {me}):
        place = places.take(where.settings, name)
        if place is None:
            continue
        try:
            hand_back(where, name)
        finally:
            place.leave()


def hand_back(where: Board, name: str) -> None:
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


def _queue(where: Board, ids: Iterable[str], queue: str) -> None:
    listed = list(ids)
    if listed:
        where.resume(listed, queue)


def _busy(where: Board) -> set[str]:
    """Return who has begun something, or has a queue of its own."""
    rows = where.rows(status="PENDING", load_output=False)
    begun = {row.executor_id for row in rows if row.executor_id}
    return begun | {queue.removeprefix(_OWN) for queue in where.queues() if queue.startswith(_OWN)}

"""Leases of workers' names: they show who is alive, and whose work has to be queued again.

On PostgreSQL a name is a session's advisory lock, which the server takes back when the session
ends or its host falls silent. On SQLite it is a lock on a file, which goes with the process.
"""

from __future__ import annotations

import sqlite3
from typing import Protocol
from urllib.parse import quote
from zlib import crc32

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from spanlab.base.errors import StoreError
from spanlab.base.settings import Settings
from spanlab.jobs import database
from spanlab.jobs.database import alone, is_sqlite
from spanlab.jobs.job_store import JOBS, PARTS, JobStore
from spanlab.storage.engine import in_words, is_lock

_OWN = "own."


def own_queue(name: str) -> str:
    """Return the queue of a worker that works alone."""
    return f"{_OWN}{name}"


def requeue_abandoned(jobs: JobStore, me: str = "") -> None:
    """Queue again the work of workers that have died, whose names nobody holds any more.

    Args:
        jobs: the jobs.
        me: the name of the calling worker, which is alive; empty if the caller is no worker.

    Raises:
        StoreError: the database cannot be reached.
    """
    for name in sorted(_busy(jobs) - {me}):
        lease = acquire(jobs.settings, name)
        if lease is None:
            continue
        try:
            requeue(jobs, name)
        finally:
            lease.release()


def requeue(jobs: JobStore, name: str) -> None:
    """Queue everything that the worker ``name`` had begun, or kept for itself, for all workers.

    The caller holds the name.
    """
    begun = jobs.rows(status="PENDING", executor_id=name, load_output=False)
    reserved = jobs.rows(status="ENQUEUED", queue_name=own_queue(name), load_output=False)
    rows = [*begun, *reserved]
    jobs.resume([row.workflow_id for row in rows if not row.parent_workflow_id], JOBS)
    jobs.resume([row.workflow_id for row in rows if row.parent_workflow_id], PARTS)
    whole = {row.workflow_id for row in begun if not row.parent_workflow_id}
    for job in sorted(whole):
        jobs.note(job, f"{name} stopped; the job is queued again")
    for job in sorted({row.parent_workflow_id for row in rows if row.parent_workflow_id} - whole):
        jobs.note(job, f"{name} stopped; what it had begun of the job is queued again")


def _busy(jobs: JobStore) -> set[str]:
    """Return who has begun something, or has a queue of its own."""
    rows = jobs.rows(status="PENDING", load_output=False)
    begun = {row.executor_id for row in rows if row.executor_id}
    return begun | {queue.removeprefix(_OWN) for queue in jobs.queues() if queue.startswith(_OWN)}


_WORKERS = 730_215  # first half of the PostgreSQL advisory locks that stand for workers


class NameLease(Protocol):
    """A worker's name that this process holds."""

    def is_held(self) -> bool:
        """Say whether the process still holds the name; False if the database does not answer."""
        ...

    def release(self) -> None:
        """Give the name up."""
        ...


def acquire(settings: Settings, name: str) -> NameLease | None:
    """Acquire a worker's name if nobody living has it.

    Returns:
        The lease, or None if somebody else holds it, in this process or another.

    Raises:
        StoreError: the database cannot be reached.
    """
    return (
        _FileLease.acquire(settings, name)
        if is_sqlite(settings)
        else _SessionLease.acquire(settings, name)
    )


def acquire_free(settings: Settings, name: str) -> tuple[str, NameLease]:
    """Acquire a worker's name, or the first free one of ``name-2``, ``name-3`` and so on."""
    number = 1
    while (lease := acquire(settings, _with_number(name, number))) is None:
        number += 1
    return _with_number(name, number), lease


def _with_number(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


class _FileLease:
    """A locked SQLite file: the one kind of lock that works alike on every system."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def acquire(cls, settings: Settings, name: str) -> _FileLease | None:
        folder = settings.home / "workers"
        folder.mkdir(parents=True, exist_ok=True)
        # The file stays: one that is deleted and made again could be locked twice.
        connection = sqlite3.connect(
            folder / quote(name, safe=" "),
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            connection.close()
            if not is_lock(error):
                raise StoreError(
                    f"the lock of the worker {name!r} cannot be taken: {in_words(error, folder)}"
                ) from error
            return None
        return cls(connection)

    def is_held(self) -> bool:
        return True

    def release(self) -> None:
        self._connection.close()


class _SessionLease:
    """A session-level advisory lock on a connection that is kept for nothing else."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def acquire(cls, settings: Settings, name: str) -> _SessionLease | None:
        connection = None
        try:
            connection = alone(settings)
            lock = text("SELECT pg_try_advisory_lock(:workers, :name)")
            key = {"workers": _WORKERS, "name": crc32(name.encode()) - 2**31}
            if connection.execute(lock, key).scalar_one():
                return cls(connection)
            connection.close()
        except SQLAlchemyError as error:
            if connection is not None:
                connection.invalidate()
                connection.close()
            raise database.refusal(settings, error) from error
        return None

    def is_held(self) -> bool:
        try:
            self._connection.execute(text("SELECT 1"))
        except SQLAlchemyError:
            return False
        return True

    def release(self) -> None:
        if not self._connection.closed:
            self._connection.invalidate()
            self._connection.close()

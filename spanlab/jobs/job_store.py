"""The store of jobs: reads and writes their state in the jobs' database, and works on none.

The attributes of its rows are explained in ``views``.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from spanlab.base.errors import NotFoundError, SpanlabError, StoreError
from spanlab.base.fields import storable
from spanlab.base.settings import Settings
from spanlab.jobs import database
from spanlab.jobs.views import (
    KINDS,
    SHOWN,
    UNDER_WAY,
    JobState,
    JobView,
    PartState,
    log_of,
    view_of,
    with_parts,
)
from spanlab.schema import SearchCurve
from spanlab.schema.progress import RunProgress

if TYPE_CHECKING:
    from dbos import DBOSClient, WorkflowStatus

JOBS = "jobs"  # the queue of whole jobs
PARTS = "parts"  # the queue of their parts
_WHOLE = {"has_parent": False}  # jobs, of whatever kind, and not their parts
OPEN = ["ENQUEUED", "DELAYED", "PENDING"]  # what DBOS calls jobs that are queued or running

_EVERY = 0.4  # seconds between two looks at a job that is waited for
_NOT_IN_JSONB = re.compile("[\0\ud800-\udfff]")  # characters that PostgreSQL refuses there


class JobStore:
    """The jobs of one database; any number of threads may share it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._making = Lock()

    @cached_property
    def client(self) -> DBOSClient:
        """The connection, made with its tables when it is first needed."""
        with self._making:
            database.prepare(self.settings)
            return database.client(self.settings)

    # Reading

    def jobs(self, limit: int, offset: int) -> list[JobView]:
        """Return some jobs, the newest first."""
        return self._views(limit=limit, offset=offset, sort_desc=True)

    def jobs_by_id(self, job_ids: Sequence[str]) -> dict[str, JobView]:
        """Return those jobs that have one of these whole ids, by id."""
        views = self._views(workflow_ids=list(job_ids)) if job_ids else []
        return {view.id: view for view in views}

    def under_way(self) -> list[str]:
        """Return the ids of all jobs that are queued or running."""
        rows = self.rows(**_WHOLE, status=OPEN, load_output=False)
        return [row.workflow_id for row in rows]

    def _views(self, **filters: Any) -> list[JobView]:
        rows = self.rows(**_WHOLE, load_input=True, **filters)
        views = [self.view(row) for row in rows]
        # Of a job that goes on its row tells; one that was stopped or killed is behind its parts.
        behind = [view.id for view in views if view.state not in {JobState.RUNNING, JobState.DONE}]
        parts = self._parts(behind) if behind else {}
        return [with_parts(view, parts.get(view.id, ())) for view in views]

    def job(self, job_id: str) -> JobView:
        """Return the one job whose id begins like this, with failures and log."""
        view = self.view(row := self.row(job_id))
        parts = self.parts(row.workflow_id)
        failures = [failure for part in parts for failure in part.failures]
        return replace(
            with_parts(view, parts), failures=tuple(failures[::-1][:SHOWN]), log=log_of(row)
        )

    def wait(
        self,
        job_id: str,
        *,
        timeout: float | None = None,
        on_progress: Callable[[JobView], None] = lambda _view: None,
    ) -> JobView:
        """Wait until a job is over or paused.

        Args:
            job_id: its id, or how it begins.
            timeout: seconds; None waits for ever.
            on_progress: called with the job about twice a second.

        Returns:
            The job as it is then, with failures and log.

        Raises:
            NotFoundError: there is no such job.
            SpanlabError: the time is over and the job is not, or the disk is full.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        view = self.job(job_id)
        while True:
            if view.state not in UNDER_WAY:
                view = self.job(view.id)
            on_progress(view)
            if view.state not in UNDER_WAY:
                return view
            database.check_space(self.settings)
            if deadline is not None and time.monotonic() > deadline:
                raise SpanlabError(f"job {view.id} is still {view.state} after {timeout:g} seconds")
            time.sleep(_EVERY)
            view = self.jobs_by_id([view.id]).get(view.id, view)

    def row(self, job_id: str) -> WorkflowStatus:
        """Return the workflow of the job whose id begins like this, with its request.

        Raises:
            NotFoundError: no job's id does, or several do.
        """
        rows = self.rows(**_WHOLE, workflow_id_prefix=job_id, load_input=True, limit=2)
        if not job_id or not rows:
            raise NotFoundError(f"there is no job {job_id!r}; spanlab jobs list names them")
        if len(rows) > 1 and rows[0].workflow_id != job_id:
            raise NotFoundError(f"several jobs' ids begin with {job_id!r}: give more of it")
        return rows[0]

    def parts(self, job_id: str) -> list[PartState]:
        """Return what the parts of a job have done, in their order."""
        return [PartState.of(row) for row in self.rows(parent_workflow_id=job_id)]

    def _parts(self, job_ids: Sequence[str]) -> dict[str, list[PartState]]:
        """Return the parts of several jobs by job id, without their errors."""
        by_job: dict[str, list[PartState]] = defaultdict(list)
        for row in self.rows(parent_workflow_id=list(job_ids), load_output=False):
            by_job[row.parent_workflow_id or ""].append(PartState.of(row))
        return by_job

    def part(self, part_id: str) -> WorkflowStatus:
        """Return the workflow of a part, or of a job, by its whole id.

        Raises:
            NotFoundError: somebody has deleted it.
        """
        rows = self.rows(workflow_ids=[part_id])
        if not rows:
            raise NotFoundError(f"there is no job or part {part_id!r}")
        return rows[0]

    def view(self, row: WorkflowStatus) -> JobView:
        """Return a job as its row has it; if it goes on while the disk is full, with that error."""
        view = view_of(row)
        if view.error is None and view.state in {JobState.QUEUED, JobState.RUNNING}:
            try:
                database.check_space(self.settings)
            except StoreError as error:
                return replace(view, error=str(error))
        return view

    @property
    def is_local(self) -> bool:
        """Whether the jobs are in a file of this machine."""
        return database.is_sqlite(self.settings)

    def rows(self, **filters: Any) -> list[WorkflowStatus]:
        """Return the workflows that a filter of DBOS's lets through, without large fields."""
        if not database.exists(self.settings):
            return []
        with self._database_errors():
            return self.client.list_workflows(
                **{"load_input": False, "load_output": True, **filters}
            )

    # Writing

    def submit(
        self,
        kind: str,
        title: str,
        request: Mapping[str, Any],
        queue: str,
        *,
        job_id: str = "",
    ) -> str:
        """Queue a job and return its id, which is made up if none is given."""
        job_id = job_id or token_hex(4)
        with self._database_errors():
            self.client.enqueue(
                {
                    "workflow_name": KINDS[kind].workflow,
                    "queue_name": queue,
                    "workflow_id": job_id,
                    "app_version": database.VERSION,
                    "attributes": {"title": title},
                },
                dict(request),
            )
        return job_id

    def set_attributes(self, workflow_id: str, **attributes: Any) -> None:
        """Set attributes of a job or a part; the others stay."""
        storable_here = storable(json.loads(json.dumps(attributes)), _NOT_IN_JSONB)
        with self._database_errors():
            self.client.update_workflow_attributes(workflow_id, storable_here, merge=True)

    def report(self, job_id: str, progress: RunProgress, search: SearchCurve | None = None) -> None:
        """Write down how far a job is, and what its search has found."""
        attributes: dict[str, Any] = {"progress": asdict(progress)}
        if search is not None:
            attributes["details"] = search.model_dump(mode="json", exclude_defaults=True)
        self.set_attributes(job_id, **attributes)

    def note(self, job_id: str, text: str) -> None:
        """Add a line to a job's log."""
        self.set_attributes(job_id, **{f"log.{time.time_ns()}": text})

    def stop(self, job_id: str) -> None:
        """Take a job and its parts out of the queues, and end those that run."""
        with self._database_errors():
            self.client.cancel_workflow(job_id, cancel_children=True)

    def stop_parts(self, job_id: str) -> None:
        """Take a job's parts out of the queues, and end those that run."""
        parts = [row.workflow_id for row in self.rows(parent_workflow_id=job_id)]
        if parts:
            with self._database_errors():
                self.client.cancel_workflows(parts)

    def resume(self, workflow_ids: Sequence[str], queue: str) -> None:
        """Queue jobs or parts again; those that are over stay as they are."""
        if workflow_ids:
            with self._database_errors():
                self.client.resume_workflows(list(workflow_ids), queue_name=queue)

    def queues(self) -> list[str]:
        """Return the names of all queues there are."""
        if not database.exists(self.settings):
            return []
        with self._database_errors():
            return [queue.name for queue in self.client.list_queues()]

    @contextmanager
    def _database_errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise database.refusal(self.settings, error) from error


_STORES: dict[Settings, JobStore] = {}
_LOCK = Lock()


def shared_job_store(settings: Settings | None = None) -> JobStore:
    """Return the process's one job store of these settings (None: of the environment)."""
    settings = settings or Settings.read()
    settings = settings.model_copy(update={"home": settings.home.absolute()})
    with _LOCK:
        return _STORES.setdefault(settings, JobStore(settings))

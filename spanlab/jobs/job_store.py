"""The store of jobs: what is known of each, read and written without working on any.

A job's state is in its workflow's attributes: ``title``, ``progress``,
``details``, ``stop`` ("pause" or "cancel" if somebody stopped it; ``wish`` in jobs of earlier
versions) and ``log.<when>`` for each line of its log. Its parts are child workflows, whose
attributes tell what they have done.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from optimizers.curve import Curve
from spanlab.errors import NotFoundError, StoreError
from spanlab.fields import storable
from spanlab.jobs import database
from spanlab.jobs.kinds import KINDS, Kind, kind_of
from spanlab.jobs.views import JobState, JobView, LogLine
from spanlab.lm import Usage
from spanlab.settings import Settings
from spanlab.workflows.runs import Failure, Progress

if TYPE_CHECKING:
    from dbos import DBOSClient, WorkflowStatus

JOBS = "jobs"  # the queue of whole jobs
PARTS = "parts"  # the queue of their parts

_NOT_IN_JSONB = re.compile("[\0\ud800-\udfff]")  # characters that PostgreSQL refuses there
_SHOWN = 200  # failures and log lines that a job's page gets
_STATES = {
    "DELAYED": JobState.QUEUED,
    "ENQUEUED": JobState.QUEUED,
    "PENDING": JobState.RUNNING,
    "SUCCESS": JobState.DONE,
    "ERROR": JobState.FAILED,
    "CANCELLED": JobState.CANCELLED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": JobState.FAILED,
}


@dataclass(frozen=True)
class PartState:
    """What a part of a job has done; ``error`` if it broke."""

    state: JobState
    error: str | None = None
    done: int = 0
    usage: Usage = field(default_factory=Usage)
    failures: tuple[Failure, ...] = ()
    stopped: str | None = None

    @property
    def failed(self) -> int:
        """How many items a detector failed on."""
        return len({failure.item_id for failure in self.failures})

    def attributes(self) -> dict[str, Any]:
        """Return it as the attributes of the part's workflow."""
        return {
            "done": self.done,
            "usage": asdict(self.usage),
            "failures": [[f.item_id, f.detector, f.reason] for f in self.failures],
            "stopped": self.stopped,
        }

    @classmethod
    def of(cls, row: WorkflowStatus) -> PartState:
        """Read the attributes of a part's workflow, which may have none yet."""
        said = row.attributes or {}
        return cls(
            state=_STATES[row.status],
            error=_error(row),
            done=said.get("done", 0),
            usage=Usage(**said.get("usage", {})),
            failures=tuple(Failure(*each) for each in said.get("failures", ())),
            stopped=said.get("stopped"),
        )


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
        rows = self.rows(
            name=[each.workflow for each in KINDS.values()],
            load_input=True,
            limit=limit,
            offset=offset,
            sort_desc=True,
        )
        return [self._view(row) for row in rows]

    def job(self, job_id: str) -> JobView:
        """Return the one job whose id begins like this, with all that its parts say now."""
        view = self._view(row := self.row(job_id))
        parts = self.parts(row.workflow_id)
        failures = [failure for part in parts for failure in part.failures]
        progress = summed(view.progress, parts) if parts else view.progress
        return replace(
            view,
            progress=progress if view.state is JobState.RUNNING else still(progress),
            failures=tuple(failures[::-1][:_SHOWN]),
            log=_log(row.attributes or {}),
        )

    def row(self, job_id: str) -> WorkflowStatus:
        """Return the workflow of the job whose id begins like this, with its request.

        Raises:
            NotFoundError: no job's id does, or several do.
        """
        rows = self.rows(
            workflow_id_prefix=job_id,
            name=[each.workflow for each in KINDS.values()],
            load_input=True,
            limit=2,
        )
        if not job_id or not rows:
            raise NotFoundError(f"there is no job {job_id!r}; spanlab jobs list names them")
        if len(rows) > 1 and rows[0].workflow_id != job_id:
            raise NotFoundError(f"several jobs' ids begin with {job_id!r}: give more of it")
        return rows[0]

    def parts(self, job_id: str) -> list[PartState]:
        """Return what the parts of a job have done, in their order."""
        return [PartState.of(row) for row in self.rows(parent_workflow_id=job_id)]

    def part(self, part_id: str) -> WorkflowStatus:
        """Return the workflow of a part, or of a job, by its whole id.

        Raises:
            NotFoundError: somebody has deleted it.
        """
        rows = self.rows(workflow_ids=[part_id])
        if not rows:
            raise NotFoundError(f"there is no job or part {part_id!r}")
        return rows[0]

    def _view(self, row: WorkflowStatus) -> JobView:
        view = _view(row)
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
        with self._asking():
            return self.client.list_workflows(
                **{"load_input": False, "load_output": True, **filters}
            )

    # Writing

    def submit(self, kind: Kind, title: str, request: Mapping[str, Any], queue: str) -> str:
        """Queue a job and return its id."""
        job_id = token_hex(4)
        with self._asking():
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

    def say(self, workflow_id: str, **attributes: Any) -> None:
        """Set attributes of a job or a part; the others stay."""
        storable_here = storable(json.loads(json.dumps(attributes)), _NOT_IN_JSONB)
        with self._asking():
            self.client.update_workflow_attributes(workflow_id, storable_here, merge=True)

    def report(self, job_id: str, progress: Progress, search: Curve | None = None) -> None:
        """Write down how far a job is, and what its search has found."""
        said: dict[str, Any] = {"progress": asdict(progress)}
        if search is not None:
            said["details"] = search.model_dump(mode="json", exclude_defaults=True)
        self.say(job_id, **said)

    def note(self, job_id: str, text: str) -> None:
        """Add a line to a job's log."""
        self.say(job_id, **{f"log.{time.time_ns()}": text})

    def stop(self, job_id: str) -> None:
        """Take a job and its parts out of the queues, and end those that run."""
        with self._asking():
            self.client.cancel_workflow(job_id, cancel_children=True)

    def stop_parts(self, job_id: str) -> None:
        """Take a job's parts out of the queues, and end those that run."""
        parts = [row.workflow_id for row in self.rows(parent_workflow_id=job_id)]
        if parts:
            with self._asking():
                self.client.cancel_workflows(parts)

    def resume(self, workflow_ids: Sequence[str], queue: str) -> None:
        """Queue jobs or parts anew; those that are over stay as they are."""
        with self._asking():
            self.client.resume_workflows(list(workflow_ids), queue_name=queue)

    def queues(self) -> list[str]:
        """Return the names of all queues there are."""
        if not database.exists(self.settings):
            return []
        with self._asking():
            return [queue.name for queue in self.client.list_queues()]

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise database.refusal(self.settings, error) from error


def summed(before: Progress, parts: Sequence[PartState]) -> Progress:
    """Return the progress that the parts of a job amount to, with total and rate as before."""
    failures = [failure for part in parts for failure in part.failures]
    done = sum(part.done for part in parts)
    return replace(
        before,
        done=done,
        failed=sum(part.failed for part in parts),
        usage=sum((part.usage for part in parts), Usage()),
        remaining=(before.total - done) / before.rate if before.rate > 0 else None,
        stopped=next((part.stopped for part in parts if part.stopped), before.stopped),
        last_failures=tuple(failures[::-1][:5]),
    )


def still(progress: Progress) -> Progress:
    """Return the progress of a job that nobody works on."""
    return replace(progress, rate=0.0, remaining=None)


def _view(row: WorkflowStatus) -> JobView:
    said = row.attributes or {}
    state = _STATES[row.status]
    if state is JobState.CANCELLED and "pause" in (said.get("stop"), said.get("wish")):
        state = JobState.PAUSED
    progress = progress_of(row)
    created = _time(row.created_at)
    return JobView(
        id=row.workflow_id,
        kind=kind_of(row.name),
        title=str(said.get("title", row.workflow_id)),
        state=state,
        created=created or datetime.now(UTC),
        started=None if progress.started is None else _time(int(progress.started * 1000)),
        ended=None if state is JobState.PAUSED else _time(row.completed_at),
        progress=progress if state is JobState.RUNNING else still(progress),
        error=_error(row),
        search=curve_of(row),
    )


def curve_of(row: WorkflowStatus) -> Curve | None:
    """Return what a job's search had found when that was last written down; None for no search."""
    details = (row.attributes or {}).get("details")
    return None if details is None else Curve.model_validate(details)


def progress_of(row: WorkflowStatus) -> Progress:
    """Return how far a job was when that was last written down."""
    return _progress((row.attributes or {}).get("progress"))


def _progress(said: Mapping[str, Any] | None) -> Progress:
    if said is None:
        return Progress()
    failures = tuple(Failure(**each) for each in said["last_failures"])
    return Progress(**{**said, "usage": Usage(**said["usage"]), "last_failures": failures})


def _error(row: WorkflowStatus) -> str | None:
    """Return why a job or part failed; None if it did not."""
    if any(isinstance(value, str) for value in (row.input, row.output, row.error)):
        return database.NOT_JSON  # DBOS gives the text of what it did not read; ours is no text
    return None if row.error is None else str(row.error) or type(row.error).__name__


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def _log(said: Mapping[str, Any]) -> tuple[LogLine, ...]:
    lines = sorted((int(key[4:]), text) for key, text in said.items() if key.startswith("log."))
    return tuple(
        LogLine(datetime.fromtimestamp(when / 1e9, UTC), str(text))
        for when, text in lines[-_SHOWN:]
    )


_STORES: dict[Settings, JobStore] = {}
_LOCK = Lock()


def of(settings: Settings | None = None) -> JobStore:
    """Return the process's one job store of these settings (None: of the environment)."""
    settings = settings or Settings.read()
    settings = settings.model_copy(update={"home": settings.home.absolute()})
    with _LOCK:
        return _STORES.setdefault(settings, JobStore(settings))

"""What people see of a job: its kind, its state, how far it is, and why it ended.

A job's attributes are ``title``, ``progress``, ``details`` (what a search has found), ``stop``
("pause" or "cancel" if somebody stopped it; ``wish`` in jobs of earlier versions) and
``log.<when>`` for each line of its log. Its parts are child workflows, whose attributes tell what
they have done.

A kind's module registers its workflows with DBOS when it is imported, which a worker does before
it starts. The workflow takes one JSON object, the job's request, and ends with its result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from spanlab import doors
from spanlab.base.errors import BudgetError
from spanlab.jobs.database import NOT_JSON
from spanlab.schema import SearchCurve
from spanlab.schema.progress import FailedItem, RunProgress
from spanlab.schema.usage import Usage

if TYPE_CHECKING:
    from dbos import WorkflowStatus


KINDS: Final = doors.jobs()


def kind_of(workflow: str) -> str:
    """Return the kind of job that a workflow stands for, of one that nobody offers its name."""
    return next((name for name, kind in KINDS.items() if kind.workflow == workflow), workflow)


def described(kind: str) -> doors.Job:
    """Return what is known of a kind of job, which may be one that nobody offers any more."""
    return KINDS.get(kind) or doors.Job(kind, "item", kind, "")


def load() -> None:
    """Import the modules of all kinds, so that DBOS knows their workflows."""
    for kind in KINDS.values():
        resolve_name(kind.place)


class JobState(StrEnum):
    """What has become of a job."""

    QUEUED = "queued"  # waits for a worker
    RUNNING = "running"
    PAUSED = "paused"  # somebody stopped it; resume goes on where it was
    DONE = "done"  # all items dealt with, the failed ones included, or the budget spent
    FAILED = "failed"  # the job itself broke; `error` says why
    CANCELLED = "cancelled"  # somebody ended it; what is saved stays


UNDER_WAY: Final = {JobState.QUEUED, JobState.RUNNING}


@dataclass(frozen=True)
class LogLine:
    """A remark of a worker on a job, such as that it was taken up again."""

    at: datetime
    text: str


@dataclass(frozen=True)
class JobView:
    """A job as a list or a page shows it; times are UTC.

    ``failures`` (the newest first, at most 200) and ``log`` (the newest last, at most 200) are
    filled for a single job and empty in lists. ``search`` is what an optimisation has found
    so far, None for a detection. ``models`` are those that its request names; ``request`` is that
    as JSON, None where it cannot be read.
    """

    id: str
    kind: str
    title: str
    state: JobState
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    progress: RunProgress = field(default_factory=RunProgress)
    error: str | None = None
    is_out_of_budget: bool = False  # which the error is then about
    failures: tuple[FailedItem, ...] = ()
    log: tuple[LogLine, ...] = ()
    search: SearchCurve | None = None
    models: tuple[str, ...] = ()
    request: Mapping[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen unless somebody asks for it."""
        return self.state in {JobState.DONE, JobState.FAILED, JobState.CANCELLED}

    @property
    def is_all_failed(self) -> bool:
        """Whether it is done, and nothing came of it: every detector failed on every item.

        Of several detectors, this is known where all failures are: of a single job, of up to 200.
        """
        detectors = (self.request or {}).get("detectors", ()) if self.kind == "detect" else ()
        n_detectors = sum(len(detector.get("members", ())) or 1 for detector in detectors) or 1
        n_failed = self.progress.failed if n_detectors == 1 else len(self.failures)
        n_tried = n_detectors * self.progress.done
        return self.state is JobState.DONE and 0 < n_tried <= n_failed


SHOWN = 200  # failures and log lines that a job's page gets
_PROGRESS = TypeAdapter(RunProgress)
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
    failures: tuple[FailedItem, ...] = ()
    stopped: str | None = None

    @property
    def failed(self) -> int:
        """How many items a detector failed on."""
        return len({failure.item_id for failure in self.failures})

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the part's workflow, as JSON."""
        return {
            "done": self.done,
            "usage": asdict(self.usage),
            "failures": [[f.item_id, f.detector, f.reason] for f in self.failures],
            "stopped": self.stopped,
        }

    @classmethod
    def of(cls, row: WorkflowStatus) -> PartState:
        """Read the attributes of a part's workflow, which may have none yet."""
        attributes = row.attributes or {}
        return cls(
            state=_STATES[row.status],
            error=_error(row),
            done=attributes.get("done", 0),
            usage=Usage(**attributes.get("usage", {})),
            failures=tuple(FailedItem(*fields) for fields in attributes.get("failures", ())),
            stopped=attributes.get("stopped"),
        )


def add_up_parts(before: RunProgress, parts: Sequence[PartState]) -> RunProgress:
    """Add up what the parts of a job have done and used; total and rate stay as ``before``."""
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


def without_rate(progress: RunProgress) -> RunProgress:
    """Return the progress without rate and remaining time: nobody works on the job."""
    return replace(progress, rate=0.0, remaining=None)


def with_parts(view: JobView, parts: Sequence[PartState]) -> JobView:
    """Return a job with what its parts have done and used; as it is if it has none."""
    if not parts:
        return view
    progress = add_up_parts(view.progress, parts)
    return replace(
        view, progress=progress if view.state is JobState.RUNNING else without_rate(progress)
    )


def view_of(row: WorkflowStatus) -> JobView:
    """Return a job as its row alone has it, without failures and log."""
    attributes = row.attributes or {}
    state = _STATES[row.status]
    if state is JobState.CANCELLED and "pause" in (attributes.get("stop"), attributes.get("wish")):
        state = JobState.PAUSED
    progress = progress_of(row)
    created = _time(row.created_at)
    return JobView(
        id=row.workflow_id,
        kind=kind_of(row.name),
        title=str(attributes.get("title", row.workflow_id)),
        state=state,
        created=created or datetime.now(UTC),
        started=None if progress.started is None else _time(int(progress.started * 1000)),
        ended=None if state is JobState.PAUSED else _time(row.completed_at),
        progress=progress if state is JobState.RUNNING else without_rate(progress),
        error=_error(row),
        is_out_of_budget=getattr(row.error, "name", "") == BudgetError.__name__,  # as DBOS has it
        search=curve_of(row),
        models=tuple(dict.fromkeys(_models(row.input))),
        request=row.input["args"][0] if isinstance(row.input, dict) else None,
    )


def _models(request: object) -> Iterator[str]:
    """Yield the names of the models in a request, wherever in it they stand."""
    if isinstance(request, dict):
        name = request.get("model")
        if isinstance(name, str) and name:
            yield name
        for value in request.values():
            yield from _models(value)
    elif isinstance(request, list | tuple):
        for value in request:
            yield from _models(value)


def curve_of(row: WorkflowStatus) -> SearchCurve | None:
    """Return what a job's search had found when that was last written down; None for no search."""
    details = (row.attributes or {}).get("details")
    return None if details is None else SearchCurve.model_validate(details)


def progress_of(row: WorkflowStatus) -> RunProgress:
    """Return how far a job was when that was last written down."""
    return _PROGRESS.validate_python((row.attributes or {}).get("progress") or {})


def _error(row: WorkflowStatus) -> str | None:
    """Return why a job or part failed; None if it did not."""
    if any(isinstance(value, str) for value in (row.input, row.output, row.error)):
        return NOT_JSON  # DBOS gives the text of what it did not read; ours is no text
    return None if row.error is None else str(row.error) or type(row.error).__name__


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def log_of(row: WorkflowStatus) -> tuple[LogLine, ...]:
    """Return the last lines of a job's log, the newest last."""
    attributes = row.attributes or {}
    lines = sorted(
        (int(key[4:]), text) for key, text in attributes.items() if key.startswith("log.")
    )
    return tuple(
        LogLine(datetime.fromtimestamp(when / 1e9, UTC), str(text)) for when, text in lines[-SHOWN:]
    )

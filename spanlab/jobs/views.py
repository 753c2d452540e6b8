"""What people see of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from spanlab.jobs.kinds import Kind
from spanlab.schema import SearchCurve, SearchTrial
from spanlab.workflows.runs import FailedItem, RunProgress

__all__ = ["JobState", "JobView", "LogLine", "SearchTrial"]


class JobState(StrEnum):
    """What has become of a job."""

    QUEUED = "queued"  # waits for a worker
    RUNNING = "running"
    PAUSED = "paused"  # somebody stopped it; resume goes on where it was
    DONE = "done"  # all items dealt with, the failed ones included, or the budget spent
    FAILED = "failed"  # the job itself broke; `error` says why
    CANCELLED = "cancelled"  # somebody ended it; what is saved stays


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
    kind: Kind
    title: str
    state: JobState
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    progress: RunProgress = field(default_factory=RunProgress)
    error: str | None = None
    failures: tuple[FailedItem, ...] = ()
    log: tuple[LogLine, ...] = ()
    search: SearchCurve | None = None
    models: tuple[str, ...] = ()
    request: Mapping[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen unless somebody asks for it."""
        return self.state in {JobState.DONE, JobState.FAILED, JobState.CANCELLED}

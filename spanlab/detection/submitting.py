"""Queue a run over a dataset as a job, and say what differs from the last one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from spanlab.detection.request import RunRequest
from spanlab.detection.setup import differences
from spanlab.schema import OWNER, Actor, Permission

if TYPE_CHECKING:
    from datetime import datetime

    from spanlab.base.settings import Settings
    from spanlab.jobs import JobView
    from spanlab.jobs.job_store import JobStore

_PAGE: Final = 50
_LOOK_BACK: Final = 200  # jobs among which the last run of a detector is looked for


def submit_detection(
    request: RunRequest,
    settings: Settings | None = None,
    job_id: str | None = None,
    *,
    again: bool = False,
    actor: Actor = OWNER,
) -> str:
    """Queue a detection job.

    Args:
        request: what to do.
        settings: which database; None reads the environment.
        job_id: the job's id, which no other job has; None makes one.
        again: whether to start it also if a job under way does the same.
        actor: who asks.

    Returns:
        The job's id. Some worker takes it up; without one it stays queued.

    Raises:
        UnderWayError: a job under way does the same, and ``again`` is not set.
        NotFoundError: there is no such dataset.
        UsageError: a detector cannot be built as it was asked for.
    """
    actor.require(Permission.ADMINISTER)
    from spanlab.detection import job  # DBOS takes a second

    return job.submit(request, settings, job_id=job_id, again=again)


@dataclass(frozen=True)
class OtherSettings:
    """A detector's last run on a dataset, which was asked otherwise than one is now.

    ``differences`` are clauses, such as "calibration learnt.json (it was none)".
    """

    annotator: str
    job_id: str
    at: datetime
    differences: tuple[str, ...]


def other_settings(
    request: RunRequest,
    created: datetime,
    settings: Settings | None = None,
    *,
    actor: Actor = OWNER,
) -> tuple[OtherSettings, ...]:
    """Say which of a request's detectors were last run on its dataset with other settings.

    Args:
        request: what is asked for.
        created: when its dataset was made; an earlier one may have had its name.
        settings: see ``submit_detection``.
        actor: see there, too.

    Returns:
        Those detectors with what differs; none of whose runs nothing is known, such as an imported
        annotator.
    """
    actor.require(Permission.ADMINISTER)
    from spanlab.jobs.job_store import shared_job_store

    unmatched = {spec.signs: spec for spec in request.specs}
    changed: list[OtherSettings] = []
    for view, run in _runs(shared_job_store(settings), request.dataset, created):
        for earlier in run.specs:
            spec_now = unmatched.pop(earlier.signs, None)
            if spec_now is not None and (clauses := differences(earlier, spec_now)):
                changed.append(OtherSettings(spec_now.signs, view.id, view.created, clauses))
        if not unmatched:
            break
    return tuple(changed)


def _runs(jobs: JobStore, dataset: str, created: datetime) -> Iterator[tuple[JobView, RunRequest]]:
    """Yield the runs that have finished items of a dataset, the newest first."""
    for first in range(0, _LOOK_BACK, _PAGE):
        page = jobs.jobs(_PAGE, first)
        for view in page:
            finished = view.progress.done - view.progress.failed
            if view.kind != "detect" or view.request is None or finished <= 0:
                continue
            with suppress(ValidationError):
                request = RunRequest.model_validate(view.request)
                begun = view.started or view.created  # on SQLite that is cut off to seconds
                if request.dataset == dataset and begun >= created:
                    yield view, request
        if len(page) < _PAGE:
            return

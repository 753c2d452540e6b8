"""What differs between a run that is asked for and the last ones of its detectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from spanlab.detection.request import RunRequest
from spanlab.detection.setup import differences
from spanlab.jobs import Jobs, JobView
from spanlab.schema import OWNER, Actor

if TYPE_CHECKING:
    from datetime import datetime

    from spanlab.base.settings import Settings

_PAGE: Final = 50
_LOOK_BACK: Final = 200  # jobs among which the last run of a detector is looked for


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
        settings: see ``Jobs``.
        actor: see there, too.

    Returns:
        Those detectors with what differs; none of whose runs nothing is known, such as an imported
        annotator.
    """
    jobs = Jobs(settings, actor)
    unmatched = {spec.signs: spec for spec in request.specs}
    changed: list[OtherSettings] = []
    for view, run in _runs(jobs, request.dataset, created):
        for earlier in run.specs:
            spec_now = unmatched.pop(earlier.signs, None)
            if spec_now is not None and (clauses := differences(earlier, spec_now)):
                changed.append(OtherSettings(spec_now.signs, view.id, view.created, clauses))
        if not unmatched:
            break
    return tuple(changed)


def _runs(jobs: Jobs, dataset: str, created: datetime) -> Iterator[tuple[JobView, RunRequest]]:
    """Yield the runs that have finished items of a dataset, the newest first."""
    for number in range(_LOOK_BACK // _PAGE):
        page = jobs.list(_PAGE, number)
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

"""What earlier jobs were asked: one under way that does the same, and what was used before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from spanlab.detectors import DetectorSpec
from spanlab.errors import UnderWayError
from spanlab.jobs.job_store import OPEN, JobStore
from spanlab.jobs.kinds import KINDS, Kind
from spanlab.jobs.summary import progress_in_words
from spanlab.jobs.views import JobView
from spanlab.workflows.runs import RunRequest
from spanlab.workflows.settings_used import covers, differences, settings_of

_PAGE = 50
_LOOK_BACK = 200  # jobs among which the last run of a detector is looked for


@dataclass(frozen=True)
class OtherSettings:
    """A detector's last run on a dataset, which was asked otherwise than one is now.

    ``differences`` are clauses, such as "calibration learnt.json (it was none)".
    """

    annotator: str
    job_id: str
    at: datetime
    differences: tuple[str, ...]


def refuse_same(where: JobStore, kind: Kind, asked: Mapping[str, Any]) -> None:
    """Refuse a request if a job under way does all that it asks: it would be paid for twice.

    Raises:
        UnderWayError: one does.
    """
    for row in where.rows(name=KINDS[kind].workflow, status=OPEN, load_input=True):
        view = where.view(row)
        with suppress(ValidationError):  # a request of another version
            if view.request is not None and _SAME[kind](view.request, asked):
                raise UnderWayError(
                    f"job {view.id} does just that already ({view.title}: "
                    f"{progress_in_words(view)}); see: spanlab jobs show {view.id}",
                    view.id,
                )


def _same_run(under_way: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    return covers(RunRequest.model_validate(under_way), RunRequest.model_validate(asked))


def _same_search(under_way: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    from optimizers.request import Optimisation

    one, other = map(Optimisation.model_validate, (under_way, asked))
    left_out = {"name", "threads", "detector", "prompt_model"}
    return (
        one.dataset == other.dataset
        and one.search.model_dump(exclude=left_out) == other.search.model_dump(exclude=left_out)
        and settings_of(one.search.detector) == settings_of(other.search.detector)
        and _writer(one.search.prompt_model) == _writer(other.search.prompt_model)
    )


def _writer(model: Any) -> object:
    return None if model is None else settings_of(DetectorSpec(detector="prompts", model=model))


_SAME = {"detect": _same_run, "optimise": _same_search}


def other_settings(
    where: JobStore, request: RunRequest, created: datetime
) -> tuple[OtherSettings, ...]:
    """Say which of a request's detectors were last run on its dataset with other settings.

    Args:
        where: the jobs.
        request: what is asked for.
        created: when the dataset was made; an earlier one may have had its name.

    Returns:
        Those detectors; not one of whose runs nothing is known, such as an imported annotator.
    """
    wanted = {spec.signs: spec for spec in request.specs}
    changed: list[OtherSettings] = []
    for view, run in _runs(where, request.dataset, created):
        for before in run.specs:
            now = wanted.pop(before.signs, None)
            if now is not None and (clauses := differences(before, now)):
                changed.append(OtherSettings(now.signs, view.id, view.created, clauses))
        if not wanted:
            break
    return tuple(changed)


def _runs(where: JobStore, dataset: str, created: datetime) -> Iterator[tuple[JobView, RunRequest]]:
    """Yield the runs that have finished items of a dataset, the newest first."""
    for first in range(0, _LOOK_BACK, _PAGE):
        page = where.jobs(_PAGE, first)
        for view in page:
            done = view.progress.done - view.progress.failed
            if view.kind != "detect" or view.request is None or done <= 0:
                continue
            with suppress(ValidationError):
                request = RunRequest.model_validate(view.request)
                begun = view.started or view.created  # on SQLite that is cut off to seconds
                if request.dataset == dataset and begun >= created:
                    yield view, request
        if len(page) < _PAGE:
            return

"""Whether a run can be made as it was asked for, before anything is queued."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from spanlab.detectors import Spec, asks_models, entry_of
from spanlab.errors import UsageError
from spanlab.schema import Kind
from spanlab.workflows.lookup import summary_of
from spanlab.workflows.runs import RunRequest

if TYPE_CHECKING:
    from spanlab.storage import Store


def request_of(dataset: str, detectors: Sequence[Spec], **options: object) -> RunRequest:
    """Return the request for a run.

    Args:
        dataset: its name.
        detectors: what to run.
        **options: further fields of ``RunRequest``; None leaves a field to its default. Detectors
            that ask no model compute, one item at once if nobody says how many.

    Raises:
        UsageError: the fields do not go together.
    """
    given = {name: value for name, value in options.items() if value is not None}
    fields = {"dataset": dataset, "detectors": tuple(detectors), **given}
    try:
        request = RunRequest.model_validate(fields)
    except ValidationError as error:
        raise UsageError(problem(error)) from None
    if "concurrency" in given or any(asks_models(spec.detector) for spec in request.specs):
        return request
    return request.model_copy(update={"concurrency": 1})


def problem(error: ValidationError) -> str:
    """Return in one clause what is wrong with a request, without its values."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def check(store: Store, request: RunRequest) -> None:
    """Check a run's dataset, detectors and names.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: no detector is called like that, or somebody else in the dataset has a name
            under which the run would sign.
    """
    for spec in request.specs:
        entry_of(spec.detector)  # says so if there is none
    votes = {ballot.name for ballot in request.ballots}
    kinds = {each.name: each.kind for each in summary_of(store, request.dataset).annotators}
    for name in request.annotators:
        ours = Kind.VOTE if name in votes else Kind.DETECTOR
        if kinds.get(name, ours) is not ours:
            raise UsageError(
                f"{name!r} is a {kinds[name]} in {request.dataset!r}: sign with another name"
            )

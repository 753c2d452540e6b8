"""Under which names people review: never under that of a detector, a vote or gold labels."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from spanlab.detectors import installed
from spanlab.errors import UsageError
from spanlab.schema import AnnotatorKind, DatasetSummary, Name

_NAME: TypeAdapter[str] = TypeAdapter(Name)
ADJUDICATED = "adjudicated"  # the usual name of labels that were decided from those of others
_WORDS = {
    AnnotatorKind.DETECTOR: "a detector",
    AnnotatorKind.VOTE: "a vote",
    AnnotatorKind.GOLD: "gold labels",
}


def has_reviewed(summary: DatasetSummary, name: str) -> bool:
    """Return whether a person of this name has annotated the dataset."""
    return any(
        each.name == name and each.kind is AnnotatorKind.PERSON for each in summary.annotators
    )


def check_reviewer(summary: DatasetSummary, name: str) -> None:
    """Check that a person may review a dataset under ``name``.

    A detector that is installed keeps its name in every dataset, or its results could not be
    stored there later. Upper and lower case make no difference; a person who has annotated the
    dataset already goes on.

    Raises:
        UsageError: it is no name, or one of a detector, a vote or gold labels.
    """
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        raise UsageError(
            f"{name!r} cannot name a reviewer: 1 to 200 characters without control characters"
        ) from error
    if has_reviewed(summary, name):
        return
    reserved = {kind.value: kind for kind in _WORDS} | {ADJUDICATED: AnnotatorKind.GOLD}
    reserved |= {detector.casefold(): AnnotatorKind.DETECTOR for detector in installed()}
    reserved |= {
        each.name.casefold(): each.kind
        for each in summary.annotators
        if each.kind is not AnnotatorKind.PERSON
    }
    kind = reserved.get(name.casefold())
    if kind is not None:
        raise UsageError(
            f"“{name}” is the name of {_WORDS[kind]} and cannot be a reviewer's: "
            "choose another, such as your own name"
        )

"""Names that people give, checked against what the annotation database has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spanlab.errors import NotFoundError

if TYPE_CHECKING:
    from spanlab.schema import DatasetSummary
    from spanlab.storage import Store


def summary_of(store: Store, dataset: str) -> DatasetSummary:
    """Return the summary of a dataset.

    Raises:
        NotFoundError: there is none of this name; the message lists those that exist.
    """
    summaries = store.datasets()
    for summary in summaries:
        if summary.name == dataset:
            return summary
    raise NotFoundError(
        f"there is no dataset {dataset!r}; there are: {_listed(s.name for s in summaries)}"
    )


def check_annotators(summary: DatasetSummary, annotators: Iterable[str]) -> None:
    """Check that a dataset has all of these annotators.

    Raises:
        NotFoundError: names the missing ones and lists those that exist.
    """
    known = {annotator.name for annotator in summary.annotators}
    missing = [annotator for annotator in annotators if annotator not in known]
    if missing:
        raise NotFoundError(
            f"dataset {summary.name!r} has no annotator {', '.join(map(repr, missing))}; "
            f"it has: {_listed(a.name for a in summary.annotators)}"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none yet"

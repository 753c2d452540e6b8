"""Adjudication: which items are to be decided, the most disagreed first."""

from __future__ import annotations

from dataclasses import dataclass

from spanlab.errors import UsageError
from spanlab.schema import DatasetSummary, QueueQuery, Status
from spanlab.workflows.reviewers import ADJUDICATED, has_reviewed

__all__ = ["ADJUDICATED", "STATES", "AdjudicationQueue"]

STATES = {"All": None, "Not decided": Status.NOT_ANNOTATED, "Decided": Status.DONE}


def check_adjudicator(summary: DatasetSummary, name: str) -> None:
    """Check that a person may see what others said of a dataset, to decide.

    Raises:
        UsageError: the dataset is reviewed blind, and this person is one of its reviewers.
    """
    settings = summary.settings
    if settings.always_blind and (has_reviewed(summary, name) or name in settings.assigned_to):
        raise UsageError(
            f"“{name}” reviews this dataset, and blind: somebody else decides, or its settings on "
            "the Datasets page show reviewers what other people marked"
        )


@dataclass(frozen=True, kw_only=True)
class AdjudicationQueue:
    """The items to decide, most disagreement first.

    ``target`` names the gold labels that decisions become; ``state``, one of ``STATES``, is the
    items' under that name. At least ``least`` people have finished them, in ``lang`` or in any.
    """

    target: str = ADJUDICATED
    state: str = "All"
    least: int = 2
    lang: str | None = None

    @property
    def query(self) -> QueueQuery:
        """The same as a query of the store, in which the gold labels stand for the reviewer."""
        return QueueQuery(
            reviewer=self.target,
            status=STATES[self.state],
            min_annotators=self.least or None,
            lang=self.lang,
            order="disagreement",
        )

    @property
    def described(self) -> str:
        """What is decided, in one line."""
        people = "1 person" if self.least == 1 else f"{self.least} people"
        least = f"finished by {people} or more" if self.least else None
        parts = [f"written to “{self.target}”", self.lang, least]
        return " · ".join(part for part in parts if part)

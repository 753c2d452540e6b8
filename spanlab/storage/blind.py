"""Who reviews blind: a name that a reviewer may have, and how many items they have left.

Where a dataset's settings leave no choice (``is_blind``), also people who may read everything,
but review the dataset, see nothing of the others in comparisons, figures, exports and reports.
Whoever leads, adjudicates or views it without reviewing sees all of it, and so do those who have
decided all of their own items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection

from spanlab.base.errors import UsageError
from spanlab.base.names import alike, check_typed
from spanlab.schema import AnnotatorKind, Status
from spanlab.storage import assignment, campaigns, catalog
from spanlab.storage.annotators import reserved_names
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.sight import EVERYTHING, Sight


def sight_of_reviewer(connection: Connection, dataset: DatasetRow, name: str) -> Sight:
    """Return what somebody with the right to read a dataset sees outside of Review.

    That is everything, unless the dataset is always reviewed blind and they review it, with items
    left to decide. Whoever gives no name of a person could be anybody, and sees nothing of others.
    """
    settings = catalog.settings_of(connection, dataset.name)
    if not settings.is_blind:
        return EVERYTHING
    shown = settings.shown_when_done
    sight = Sight(name, blind=True, shown_when_done=shown, names_shown=shown)
    kinds = catalog.kinds_of(connection, dataset)
    try:
        check_reviewer(kinds, name)
    except UsageError:
        return replace(sight, name="")
    reviews = name in kinds or name in settings.assigned_to
    return sight if reviews and n_undecided(connection, dataset, name) else EVERYTHING


def n_undecided(connection: Connection, dataset: DatasetRow, reviewer: str) -> int:
    """Return how many items somebody has still to decide: of their part of a plan, else of all."""
    settings = catalog.settings_of(connection, dataset.name)
    checks = campaigns.CheckItems(0, ())
    if settings.known:
        checks = campaigns.check_items_of(connection, dataset, reviewer)
    given = checks.given
    n_checks = sum(item.status is Status.NOT_ANNOTATED for item in given)
    if settings.overlap:  # a plan may give this person nothing
        part = assignment.part_of(connection, dataset, settings, reviewer)
        return n_checks + (part.left if part.assigned is not None else 0)
    n_left = catalog.counts(connection, dataset, reviewer)[Status.NOT_ANNOTATED]
    n_not_given = checks.total - (len(given) - n_checks)  # of which a person is given few
    return n_checks + n_left - n_not_given


_WORDS = {
    AnnotatorKind.DETECTOR: "a detector",
    AnnotatorKind.VOTE: "a vote",
    AnnotatorKind.GOLD: "gold labels",
}


def check_reviewer(kinds: Mapping[str, AnnotatorKind], name: str) -> None:
    """Check that a person may review a dataset with annotators of these ``kinds`` as ``name``.

    A detector that is installed keeps its name in every dataset, or its results could not be
    stored there later. A person who has annotated the dataset already goes on.

    Raises:
        UsageError: it is no name, looks like one of a detector, a vote or gold labels, or looks
            like another person's (see ``base.names``).
    """
    check_typed(name, "a reviewer")
    if kinds.get(name) is AnnotatorKind.PERSON:
        return
    others = reserved_names() | dict(kinds)
    other = alike(name, others)
    if other is None:
        return
    if others[other] is AnnotatorKind.PERSON:
        raise UsageError(
            f"the name “{name}” looks like “{other}”, who annotates here: if that is you, type it "
            "as it is there; if not, use another name"
        )
    raise UsageError(
        f"the name “{name}” belongs to {_WORDS[others[other]]}: use another, such as your own name"
    )

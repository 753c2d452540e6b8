"""Who reviews blind outside of Review: what they see, and how many items they have left.

Where a dataset's settings leave no choice (``is_blind``), also people who may read everything,
but review the dataset, see nothing of the others in comparisons, figures, exports and reports.
Whoever leads, adjudicates or views it without reviewing sees all of it, and so do those who have
finished all of their own items: what is skipped can be taken up again.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection

from spanlab.base.errors import UsageError
from spanlab.schema import Status
from spanlab.storage import Store, catalog
from spanlab.storage.annotators import check_reviewer
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.sight import EVERYTHING, Sight
from spanlab.worklists import drawing
from spanlab.worklists.plans import part_of


def seen_by(store: Store, dataset: str, name: str) -> Store:
    """Return a store in which the actor sees of a dataset what ``sight_of`` says of ``name``."""
    return store.seen_with(dataset, sight_of(store, dataset, name))


def sight_of(store: Store, dataset: str, name: str) -> Sight:
    """Return what somebody who is called so in a dataset sees of many records of it.

    That is everything that their role shows, unless the dataset is always reviewed blind and they
    review it, with items left to finish. Whoever gives no name of a person could be anybody, and
    sees nothing of others.
    """
    with store.reading(dataset, many=True) as (connection, row, sight):
        settings = catalog.settings_of(connection, dataset)
        if sight.blind or not settings.is_blind:
            return sight
        shown, kinds = settings.shown_when_done, catalog.kinds_of(connection, row)
        blind = Sight(name, blind=True, shown_when_done=shown, names_shown=shown)
        try:
            check_reviewer(kinds, name)
        except UsageError:
            return replace(blind, name="")
        reviews = name in kinds or name in settings.assigned_to
        return blind if reviews and _n_undecided(connection, row, name) else EVERYTHING


def n_undecided(store: Store, dataset: str, person: str) -> int:
    """Return how many items a person has still to finish: of their part of a plan, or all."""
    with store.reading(dataset, person) as (connection, row, _):
        return _n_undecided(connection, row, person)


def _n_undecided(connection: Connection, dataset: DatasetRow, reviewer: str) -> int:
    settings = catalog.settings_of(connection, dataset.name)
    if not settings.has_lists:
        counts = catalog.counts(connection, dataset, reviewer)
        return counts[Status.NOT_ANNOTATED] + counts[Status.SKIPPED]
    if drawing.is_current(connection, dataset, reviewer):
        how_far = drawing.progress_of(connection, dataset, reviewer)
        return how_far.left + how_far.skipped
    part = part_of(connection, dataset, settings, reviewer)
    return 0 if part.assigned is None else part.left + part.skipped  # a plan may give them nothing

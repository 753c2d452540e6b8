"""How far a dataset's plan is: what it gives each person, and what they have finished of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from spanlab.schema import DatasetSettings, Kind, Share, Status
from spanlab.storage import facets, reservations
from spanlab.storage.catalog import Dataset, annotators_of
from spanlab.storage.facets import Array
from spanlab.storage.ranking import status_facet

_PIECE = 64 * facets.BLOCK  # items looked at at once
_DONE = facets.STATUSES.index(Status.DONE)
_SKIPPED = facets.STATUSES.index(Status.SKIPPED)


@dataclass(frozen=True)
class PersonProgress:
    """How far one person is with a plan, in items.

    ``assigned`` is what the plan gives them, None if it gives all to others; ``done`` and
    ``skipped`` are of these, and ``beyond`` they have finished without being asked. Where nothing
    is assigned to anybody, the plan gives them what they have finished or skipped and what still
    needs them.
    """

    annotator: str
    assigned: int | None = None
    done: int = 0
    skipped: int = 0
    beyond: int = 0

    @property
    def left(self) -> int:
        """The items that they have neither finished nor skipped."""
        return (self.assigned or 0) - self.done - self.skipped


@dataclass(frozen=True)
class PlanProgress:
    """How far a plan is: annotations that it asks for, those it has, and people by name."""

    needed: int
    done: int
    people: tuple[PersonProgress, ...]

    def of(self, annotator: str) -> PersonProgress | None:
        """Return how far a person is; None for one whom the plan does not know."""
        return next((each for each in self.people if each.annotator == annotator), None)


def progress(
    connection: Connection, dataset: Dataset, settings: DatasetSettings, only: str | None = None
) -> PlanProgress | None:
    """Return how far the plan of a dataset is; None for a dataset without one.

    Args:
        connection: in a transaction that may read.
        dataset: whose plan.
        settings: those of the dataset.
        only: the one person to look at; None for those to whom items are assigned, in that order,
            and all others who have reviewed.
    """
    if not settings.overlap:
        return None
    annotators = annotators_of(connection, dataset.id)
    reviewed = (name for name, who in annotators.items() if who.kind is Kind.PERSON)
    people = list(dict.fromkeys((*settings.assigned_to, *reviewed))) if only is None else [only]
    names = [status_facet(annotators, name) for name in people]
    plans = [_Plan.of(connection, dataset, settings, name) for name in people]
    per_item = settings.overlap
    if settings.assigned_to:
        per_item = min(per_item, len(settings.assigned_to))
    done = 0
    tallies = np.zeros((len(people), 4), dtype=np.int64)
    for start in range(0, dataset.n_items, _PIECE):
        stop = min(start + _PIECE, dataset.n_items)
        read = facets.read(connection, dataset.id, [facets.PEOPLE, *names], start, stop)
        done += int(np.minimum(read[facets.PEOPLE], per_item).sum())
        for row, (name, plan) in enumerate(zip(names, plans, strict=True)):
            tallies[row] += plan.tally(read[name], read[facets.PEOPLE], start)
    reached = tuple(
        PersonProgress(name, row[0] if plan.asks else None, *row[1:])
        for name, plan, row in zip(people, plans, tallies.tolist(), strict=True)
    )
    if settings.assigned_to:
        done = sum(person.done for person in reached)
    return PlanProgress(dataset.n_items * per_item, done, reached)


@dataclass(frozen=True)
class _Plan:
    """What a plan gives to one person if it ``asks`` them: a share, or what too few others have."""

    asks: bool
    share: Share | None
    overlap: int
    taken: dict[int, int]  # for how many others, by position, items are reserved

    @classmethod
    def of(
        cls, connection: Connection, dataset: Dataset, settings: DatasetSettings, name: str
    ) -> _Plan:
        assigned: Sequence[str] = settings.assigned_to
        if not assigned:
            taken = reservations.taken(connection, dataset, name)
            return cls(True, None, settings.overlap, taken)
        if name not in assigned:
            return cls(False, None, settings.overlap, {})
        share = Share(assigned.index(name), len(assigned), settings.overlap)
        return cls(True, share, settings.overlap, {})

    def tally(self, statuses: Array, people: Array, start: int) -> tuple[int, int, int, int]:
        """Count assigned, done, skipped and beyond of the items from the position ``start`` on."""
        done, skipped = statuses == _DONE, statuses == _SKIPPED
        given: NDArray[np.bool_] = np.zeros(len(statuses), dtype=np.bool_)
        if self.share is not None:
            given = self.share.has(np.arange(start, start + len(statuses)))
        elif self.asks:
            counted = people.astype(np.int64)
            for position, count in self.taken.items():
                if 0 <= position - start < len(counted):
                    counted[position - start] += count
            given = done | skipped | (counted < self.overlap)
        sums = (given, given & done, given & skipped, ~given & done)
        assigned, finished, left_out, beyond = (int(mask.sum()) for mask in sums)
        return assigned, finished, left_out, beyond

"""How far a dataset's plan is: what it gives each person, and what they have finished of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, false, func, select

from spanlab.schema import DatasetSettings, Kind, Share, Status
from spanlab.storage import reservations
from spanlab.storage.catalog import Annotator, Dataset, annotators_of
from spanlab.storage.selection import is_of_share
from spanlab.storage.tables import annotated, queue_values


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
    reached = tuple(
        _of_person(connection, dataset, settings, name, annotators.get(name)) for name in people
    )
    per_item = settings.overlap
    if settings.assigned_to:
        per_item = min(per_item, len(settings.assigned_to))
        done = sum(person.done for person in reached)
    else:
        n_people = queue_values.c.n_people
        counted = case((n_people < per_item, n_people), else_=per_item)
        done = connection.execute(_over_items(dataset, func.sum(counted))).scalar_one() or 0
    return PlanProgress(dataset.n_items * per_item, done, reached)


def _of_person(
    connection: Connection,
    dataset: Dataset,
    settings: DatasetSettings,
    name: str,
    who: Annotator | None,
) -> PersonProgress:
    """Count what a plan gives to one person: a share, or what too few others have."""
    everybody: Sequence[str] = settings.assigned_to
    if name in everybody:
        share = Share(everybody.index(name), len(everybody), settings.overlap)
        given, assigned = is_of_share(share), share.size(dataset.n_items)
    elif everybody:
        given, assigned = false(), None
    else:
        held = reservations.held_by_others(dataset, name, queue_values.c.position)
        given = queue_values.c.n_people + held < settings.overlap
        assigned = connection.execute(_over_items(dataset, func.count()).where(given)).scalar_one()
    # All else is counted over what the person has annotated.
    mine = (
        _over_items(dataset, annotated.c.status, func.count(), func.sum(case((given, 1), else_=0)))
        .join(
            annotated,
            (annotated.c.dataset_id == dataset.id)
            & (annotated.c.position == queue_values.c.position),
        )
        .where(annotated.c.annotator_id == (-1 if who is None else who.id))
        .group_by(annotated.c.status)
    )
    counts = {Status(status): (n, n_given) for status, n, n_given in connection.execute(mine)}
    (done, done_given), (skipped, skipped_given) = (
        counts.get(status, (0, 0)) for status in (Status.DONE, Status.SKIPPED)
    )
    if assigned is None:
        return PersonProgress(name, beyond=done)
    if not everybody:  # who has finished or skipped an item was given it
        assigned += done - done_given + skipped - skipped_given
        done_given, skipped_given = done, skipped
    return PersonProgress(name, assigned, done_given, skipped_given, done - done_given)


def _over_items(dataset: Dataset, *what: ColumnElement[Any]) -> Select[Any]:
    return (
        select(*what)
        .select_from(queue_values)
        .where(
            queue_values.c.dataset_id == dataset.id,
            queue_values.c.position < dataset.n_items,
        )
    )

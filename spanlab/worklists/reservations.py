"""Items reserved for people, so that no more review one than the plan asks for."""

from __future__ import annotations

import sys
import time

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    delete,
    func,
    literal,
    select,
    union,
)

from spanlab.schema import AnnotatorKind, Status
from spanlab.storage.catalog import DatasetRow, settings_of
from spanlab.storage.engine import insert_or_replace
from spanlab.storage.items import lock
from spanlab.storage.reviews import LEASE
from spanlab.storage.tables import (
    annotated,
    annotators,
    reservations,
)

ANY_NUMBER = sys.maxsize  # of people who may have an item at once


def reserve(
    connection: Connection, dataset: DatasetRow, position: int, reviewer: str, people: int
) -> tuple[str, ...]:
    """Reserve an item for a reviewer, or for as long again, unless enough others have it.

    Args:
        connection: in a transaction that may write; others who ask for the item wait for its end.
        dataset: where the item is.
        position: of the item.
        reviewer: who is to get it.
        people: how many are to; those count who have finished it, and those who have it reserved.

    Returns:
        The others who have it, by name, if they are enough; empty if it is reserved now.
    """
    lock(connection, dataset.id, position, position + 1)
    now = time.time()
    conditions = (reservations.c.dataset_id == dataset.id, reservations.c.position == position)
    connection.execute(delete(reservations).where(*conditions, ~_is_valid(now)))
    holders = _others_with(connection, dataset, position, reviewer)
    if len(holders) >= people:
        return holders
    row = {"dataset_id": dataset.id, "position": position, "reviewer": reviewer}
    connection.execute(insert_or_replace(connection, reservations), row | {"until": now + LEASE})
    return ()


def _others_with(
    connection: Connection, dataset: DatasetRow, position: int, reviewer: str
) -> tuple[str, ...]:
    # By a range SQLite reads the rows of the item, else those of the whole dataset.
    here = annotated.c.position.between(position, position)
    done = people_with(dataset, Status.DONE).where(here)
    if counted := settings_of(connection, dataset.name).counted_people:
        done = done.where(annotators.c.name.in_(counted))
    holders = _select_holders(dataset, time.time()).where(reservations.c.position == position)
    everybody = {str(row[0]) for row in connection.execute(union(done, holders))}
    return tuple(sorted(everybody - {reviewer}))


def has_reserved(connection: Connection, dataset: DatasetRow, position: int, reviewer: str) -> bool:
    """Return whether a reviewer holds an item for so long that ``reserve`` need not be called."""
    own = select(literal(1)).where(
        reservations.c.dataset_id == dataset.id,
        reservations.c.position == position,
        reservations.c.reviewer == reviewer,
        _is_valid(time.time()),
        reservations.c.until > time.time() + LEASE / 2,
    )
    return connection.execute(own).first() is not None


def release(connection: Connection, dataset: DatasetRow, reviewer: str) -> None:
    """Release all items that are reserved for a reviewer."""
    conditions = (reservations.c.dataset_id == dataset.id, reservations.c.reviewer == reviewer)
    connection.execute(delete(reservations).where(*conditions))


def n_held(connection: Connection, dataset: DatasetRow, reviewer: str) -> int:
    """Return how many items are reserved for somebody who has neither finished nor skipped them."""
    holders = _select_holders(dataset, time.time()).where(reservations.c.reviewer == reviewer)
    return connection.execute(holders.with_only_columns(func.count())).scalar_one()


def held_by_others(
    dataset: DatasetRow, reviewer: str, position: ColumnElement[int]
) -> ColumnElement[int]:
    """Return for how many others the item at ``position`` is reserved who have not finished it."""
    holders = _select_holders(dataset, time.time()).where(
        reservations.c.reviewer != reviewer, reservations.c.position == position
    )
    return holders.with_only_columns(func.count()).scalar_subquery()


def n_finished(connection: Connection, dataset: DatasetRow, of: FromClause) -> ColumnElement[int]:
    """Return how many have finished the item of a row ``of`` queue values, of those who count."""
    counted = settings_of(connection, dataset.name).counted_people
    if not counted:
        n_people: ColumnElement[int] = of.c.n_people
        return n_people
    done = people_with(dataset, Status.DONE).where(
        annotated.c.position == of.c.position, annotators.c.name.in_(counted)
    )
    return done.with_only_columns(func.count()).correlate(of).scalar_subquery()


def _select_holders(dataset: DatasetRow, now: float) -> Select[tuple[str]]:
    """Select who has reserved items and has neither finished nor skipped them."""
    decided = (
        people_with(dataset, Status.DONE, Status.SKIPPED)
        .where(
            annotated.c.position == reservations.c.position,
            annotators.c.name == reservations.c.reviewer,
        )
        .correlate(reservations)
        .exists()
    )
    return select(reservations.c.reviewer).where(
        reservations.c.dataset_id == dataset.id, _is_valid(now), ~decided
    )


def _is_valid(now: float) -> ColumnElement[bool]:
    # A reservation further ahead was made before the clock was set back.
    return and_(reservations.c.until > now, reservations.c.until <= now + 2 * LEASE)


def people_with(dataset: DatasetRow, *statuses: Status) -> Select[tuple[str]]:
    """Select the names of people with annotations in one of these states."""
    return (
        select(annotators.c.name)
        .join(
            annotated,
            (annotated.c.dataset_id == annotators.c.dataset_id)
            & (annotated.c.annotator_id == annotators.c.id),
        )
        .where(
            annotators.c.dataset_id == dataset.id,
            annotators.c.kind == AnnotatorKind.PERSON.value,
            annotated.c.status.in_([status.value for status in statuses]),
        )
    )

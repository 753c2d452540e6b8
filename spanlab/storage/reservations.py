"""Items reserved for people: what a queue has offered to one of them is not offered to too many."""

from __future__ import annotations

import time

from sqlalchemy import ColumnElement, Connection, Select, delete, func, select, union, update

from spanlab.schema import Kind, Status
from spanlab.storage.catalog import Dataset
from spanlab.storage.engine import insert_or_replace
from spanlab.storage.items import lock
from spanlab.storage.tables import annotated, annotators, reservations

LEASE = 3600.0  # seconds after which an item is offered to others if nothing is written to it


def reserve(
    connection: Connection, dataset: Dataset, position: int, reviewer: str, people: int
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
    here = (reservations.c.dataset_id == dataset.id, reservations.c.position == position)
    connection.execute(delete(reservations).where(*here, reservations.c.until <= now))
    done = _people(dataset, Status.DONE).where(annotated.c.position == position)
    held = _held(dataset, now).where(here[1])
    there = {str(row[0]) for row in connection.execute(union(done, held))}
    others = sorted(there - {reviewer})
    if len(others) >= people:
        return tuple(others)
    row = {"dataset_id": dataset.id, "position": position, "reviewer": reviewer}
    connection.execute(insert_or_replace(connection, reservations), row | {"until": now + LEASE})
    return ()


def renew(connection: Connection, dataset: Dataset, position: int, reviewer: str) -> None:
    """Let a reservation last for as long again, if there is one: the reviewer is at work."""
    connection.execute(
        update(reservations)
        .where(
            reservations.c.dataset_id == dataset.id,
            reservations.c.position == position,
            reservations.c.reviewer == reviewer,
        )
        .values(until=time.time() + LEASE)
    )


def held_by_others(
    dataset: Dataset, reviewer: str, position: ColumnElement[int]
) -> ColumnElement[int]:
    """Return for how many others the item at ``position`` is reserved who have not finished it."""
    held = _held(dataset, time.time()).where(
        reservations.c.reviewer != reviewer, reservations.c.position == position
    )
    return held.with_only_columns(func.count()).scalar_subquery()


def _held(dataset: Dataset, now: float) -> Select[tuple[str]]:
    """Select who has reserved items and has neither finished nor skipped them."""
    decided = (
        _people(dataset, Status.DONE, Status.SKIPPED)
        .where(
            annotated.c.position == reservations.c.position,
            annotators.c.name == reservations.c.reviewer,
        )
        .correlate(reservations)
        .exists()
    )
    return select(reservations.c.reviewer).where(
        reservations.c.dataset_id == dataset.id, reservations.c.until > now, ~decided
    )


def _people(dataset: Dataset, *statuses: Status) -> Select[tuple[str]]:
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
            annotators.c.kind == Kind.PERSON.value,
            annotated.c.status.in_([status.value for status in statuses]),
        )
    )

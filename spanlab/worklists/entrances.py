"""What people did before they began: tests that they took, guidelines that they read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import func, select

from spanlab.schema import AnnotatorKind, Permission
from spanlab.storage import Store
from spanlab.storage.catalog import find
from spanlab.storage.engine import insert_new
from spanlab.storage.tables import annotators, entrances, guidelines_read, operations


class Entrance(NamedTuple):
    """A test that a person has done (``attempt`` from 1), or being let in (0); its time (UTC)."""

    reviewer: str
    attempt: int
    score: float | None
    passed: bool
    at: datetime


class ReadGuidelines(NamedTuple):
    """A person's confirmation of having read a version of the guidelines, and its time (UTC)."""

    reviewer: str
    version: int
    at: datetime


def enter(store: Store, dataset: str, entrance: Entrance) -> None:
    """Store that somebody has done a test, or was let in, which is for a lead to do.

    What is stored already stays.
    """
    values = entrance._asdict() | {"passed": int(entrance.passed), "at": entrance.at.isoformat()}
    if entrance.attempt:
        with store.reviewing(dataset, entrance.reviewer) as (connection, row):
            connection.execute(insert_new(connection, entrances), {"dataset_id": row.id, **values})
        return
    with store.writing(Permission.MANAGE, dataset) as connection:
        row = find(connection, dataset)
        connection.execute(insert_new(connection, entrances), {"dataset_id": row.id, **values})
        store.note(connection, "let in", dataset, entrance.reviewer)


def entered(store: Store, dataset: str) -> tuple[Entrance, ...]:
    """Return who has done a test or was let in, by name, the first tests first."""
    with store.reading(dataset) as (connection, row, sight):
        query = select(entrances).where(entrances.c.dataset_id == row.id)
        rows = connection.execute(query.order_by(entrances.c.reviewer, entrances.c.attempt)).all()
    return tuple(
        Entrance(
            reviewer=row.reviewer,
            attempt=row.attempt,
            score=row.score,
            passed=bool(row.passed),
            at=datetime.fromisoformat(row.at),
        )
        for row in rows
        if sight.concerns(row.reviewer)
    )


def confirm_read(store: Store, dataset: str, person: str, version: int) -> None:
    """Store that a person has read a version of the guidelines; the first time counts."""
    with store.reviewing(dataset, person) as (connection, row):
        values = {"dataset_id": row.id, "reviewer": person, "version": version}
        now = datetime.now(UTC).isoformat()
        connection.execute(insert_new(connection, guidelines_read), {**values, "at": now})


def readings(store: Store, dataset: str) -> tuple[ReadGuidelines, ...]:
    """Return who has read which version of the guidelines, by name and version."""
    read = guidelines_read.c
    with store.reading(dataset) as (connection, row, sight):
        query = select(guidelines_read).where(read.dataset_id == row.id)
        rows = connection.execute(query.order_by(read.reviewer, read.version)).all()
    return tuple(
        ReadGuidelines(row.reviewer, row.version, datetime.fromisoformat(row.at))
        for row in rows
        if sight.concerns(row.reviewer)
    )


def last_active(store: Store, dataset: str) -> dict[str, datetime]:
    """Return when each person has last done anything to an item (UTC), by name."""
    is_author = (annotators.c.dataset_id == operations.c.dataset_id) & (
        annotators.c.id == operations.c.annotator_id
    )
    query = select(annotators.c.name, func.max(operations.c.at)).join(annotators, is_author)
    query = query.where(annotators.c.kind == AnnotatorKind.PERSON.value)
    with store.reading(dataset) as (connection, row, sight):
        of_dataset = query.where(operations.c.dataset_id == row.id)
        rows = connection.execute(of_dataset.group_by(annotators.c.name)).all()
    return {name: datetime.fromisoformat(at) for name, at in rows if sight.concerns(name)}

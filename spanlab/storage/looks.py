"""Who has seen other people's marks of an item, where reviewers may see them at all."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, and_, select

from spanlab.schema import Status
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.engine import insert_new
from spanlab.storage.tables import annotated, annotators, items, looks, operations


def note(connection: Connection, dataset: DatasetRow, position: int, reviewer: str) -> None:
    """Store that a person has seen what others marked in an item; the first time counts."""
    row = {"dataset_id": dataset.id, "position": position, "reviewer": reviewer}
    now = datetime.now(UTC).isoformat()
    connection.execute(insert_new(connection, looks), row | {"at": now})


def is_noted(connection: Connection, dataset: DatasetRow, position: int, reviewer: str) -> bool:
    """Return whether ``note`` was called for this."""
    where = (looks.c.dataset_id == dataset.id, looks.c.position == position)
    noted = select(looks.c.at).where(*where, looks.c.reviewer == reviewer)
    return connection.execute(noted).first() is not None


def of_dataset(connection: Connection, dataset: DatasetRow) -> frozenset[tuple[str, str]]:
    """Return the finished items, by id, with those who wrote to them after they had looked."""
    author = and_(annotators.c.dataset_id == dataset.id, annotators.c.name == looks.c.reviewer)
    own = [
        and_(*(table.c[name] == value for name, value in _AT.items()))
        for table in (annotated, operations)
    ]
    pairs = (
        select(items.c.item_id, looks.c.reviewer)
        .join(items, and_(*(items.c[name] == looks.c[name] for name in ("dataset_id", "position"))))
        .join(annotators, author)
        .join(annotated, own[0])
        .join(operations, own[1])
        .where(looks.c.dataset_id == dataset.id, operations.c.at >= looks.c.at)
        .where(annotated.c.status == Status.DONE.value)
    )
    return frozenset((item_id, reviewer) for item_id, reviewer in connection.execute(pairs))


_AT = {
    "dataset_id": looks.c.dataset_id,
    "position": looks.c.position,
    "annotator_id": annotators.c.id,
}

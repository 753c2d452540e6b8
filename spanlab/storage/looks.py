"""Who has seen other people's marks of an item before they finished it, where they may choose."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, select

from spanlab.storage.catalog import DatasetRow
from spanlab.storage.engine import insert_new
from spanlab.storage.tables import items, looks


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
    """Return the items, by id, with those who have seen what others marked in them."""
    here = (items.c.dataset_id == looks.c.dataset_id, items.c.position == looks.c.position)
    pairs = select(items.c.item_id, looks.c.reviewer).where(*here, looks.c.dataset_id == dataset.id)
    return frozenset((item_id, reviewer) for item_id, reviewer in connection.execute(pairs))

"""What people have finished, when and in which time, as the logs of their reviews tell."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, and_, case, func, or_, select

from spanlab.schema import Kind, Status
from spanlab.storage.catalog import Dataset
from spanlab.storage.tables import annotated, annotators, items, operations

_DONE = ('{"kind":"finish"', '{"kind":"status","status":"done"')  # how such operations begin


class Finished(NamedTuple):
    """An item that a person has finished.

    ``at`` is when Done was pressed last (UTC). ``seconds`` is the time that the item was worked
    on, as the browser measured it; None where it did not.
    """

    annotator: str
    item_id: str
    at: datetime
    seconds: float | None


def finished(connection: Connection, dataset: Dataset) -> tuple[Finished, ...]:
    """Return the items that are done now, once per person, the earliest first, then by name.

    Imported annotations have no log and are not among them. Empty where nobody has pressed Done.
    """
    done = or_(*(operations.c.json.startswith(start, autoescape=True) for start in _DONE))
    at = func.max(case((done, operations.c.at)))
    names = ("dataset_id", "position", "annotator_id")
    rows = connection.execute(
        select(annotators.c.name, items.c.item_id, at, func.sum(operations.c.seconds))
        .select_from(operations)
        .join(annotated, and_(*(operations.c[name] == annotated.c[name] for name in names)))
        .join(items, and_(*(operations.c[name] == items.c[name] for name in names[:2])))
        .join(
            annotators,
            (annotators.c.dataset_id == operations.c.dataset_id)
            & (annotators.c.id == operations.c.annotator_id),
        )
        .where(
            operations.c.dataset_id == dataset.id,
            or_(done, operations.c.seconds.is_not(None)),
            annotated.c.status == Status.DONE.value,
            annotators.c.kind == Kind.PERSON.value,
        )
        .group_by(annotators.c.name, items.c.item_id)
        .having(at.is_not(None))
    )
    found = [
        Finished(who, item, datetime.fromisoformat(on), spent) for who, item, on, spent in rows
    ]
    return tuple(sorted(found, key=lambda each: (each.at, each.annotator, each.item_id)))

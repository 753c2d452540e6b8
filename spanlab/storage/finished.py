"""When people finished items, as the logs of their reviews tell."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from sqlalchemy import Connection, func, or_, select

from spanlab.schema import Kind, Status
from spanlab.storage.catalog import Dataset
from spanlab.storage.tables import annotated, annotators, operations

_DONE = ('{"kind":"finish"', '{"kind":"status","status":"done"')  # how such operations begin


class FinishedDay(NamedTuple):
    """How many items a person finished on a day (UTC)."""

    day: date
    annotator: str
    items: int


def finished_by_day(connection: Connection, dataset: Dataset) -> tuple[FinishedDay, ...]:
    """Return the items that people have finished by day, the earliest first, then by name.

    An item that is done now counts once per person, on the day of the last Done. Imported
    annotations have no log and count on no day. Empty where nobody has pressed Done.
    """
    same_log = [
        operations.c[name] == annotated.c[name]
        for name in ("dataset_id", "position", "annotator_id")
    ]
    last = (
        select(operations.c.annotator_id, func.max(operations.c.at).label("at"))
        .join(annotated, onclause=same_log[0] & same_log[1] & same_log[2])
        .where(
            operations.c.dataset_id == dataset.id,
            or_(*(operations.c.json.startswith(start, autoescape=True) for start in _DONE)),
            annotated.c.status == Status.DONE.value,
        )
        .group_by(operations.c.annotator_id, operations.c.position)
        .subquery()
    )
    day = func.substr(last.c.at, 1, len("2000-01-01")).label("day")
    rows = connection.execute(
        select(day, annotators.c.name, func.count())
        .join(annotators, annotators.c.id == last.c.annotator_id)
        .where(annotators.c.dataset_id == dataset.id, annotators.c.kind == Kind.PERSON.value)
        .group_by(day, annotators.c.name)
    )
    return tuple(sorted(FinishedDay(date.fromisoformat(on), who, n) for on, who, n in rows))

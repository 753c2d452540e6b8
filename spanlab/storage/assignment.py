"""Who gets which items of a plan: shares, how far people are with them, what they finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    false,
    func,
    select,
    true,
    update,
)

from spanlab.schema import AssignedShare, DatasetSettings, Status
from spanlab.schema.progress import PersonProgress
from spanlab.storage.campaigns import is_check
from spanlab.storage.catalog import AnnotatorRow, DatasetRow, annotators_of, settings_of
from spanlab.storage.reservations import held_by_others, people_with
from spanlab.storage.tables import (
    annotated,
    annotators,
    queue_values,
)


def is_planned(
    connection: Connection, dataset: DatasetRow, settings: DatasetSettings
) -> ColumnElement[bool]:
    """Return the condition that a plan is about an item: not about those with known answers."""
    if settings.known is None:
        return true()
    return ~is_check(connection, dataset, queue_values.c.position)


def part_of(
    connection: Connection, dataset: DatasetRow, settings: DatasetSettings, name: str
) -> PersonProgress:
    """Count what a plan gives to one person: a share, or what too few others have."""
    annotator = annotators_of(connection, dataset.id).get(name)
    everybody: Sequence[str] = settings.assigned_to
    is_away = name in settings.away
    share = settings.share_of(name)
    planned = is_own = is_planned(connection, dataset, settings)
    if share is not None:
        is_own = and_(planned, is_of_share(dataset, share))
    elif name in everybody:  # those of their share that they have finished stay theirs
        old_share = AssignedShare(everybody.index(name), len(everybody), settings.overlap)
        is_own = and_(planned, is_of_share(dataset, old_share))
    elif everybody:
        is_own = false()
    elif not is_away:
        n_held = held_by_others(dataset, name, queue_values.c.position)
        is_own = and_(planned, queue_values.c.n_people + n_held < settings.overlap)

    def count(condition: ColumnElement[bool]) -> int:
        counting = over_items(dataset, func.count()).where(condition)
        return int(connection.execute(counting).scalar_one())

    if share is not None and settings.returned:
        taken = queue_values.c.n_people >= min(settings.overlap, len(everybody))
        assigned = count(is_own & ~(taken & ~_is_annotated(dataset, annotator)))
    elif share is not None and not share.away:  # only check items are counted one by one
        assigned = share.size(_n_dealt(connection, dataset))
        if settings.known:
            known = is_check(connection, dataset, queue_values.c.position)
            dealt = queue_values.c.turn.is_not(None)
            assigned -= count(known & dealt & is_of_share(dataset, share))
    else:
        assigned = count(is_own)
    # All else is counted over what the person has annotated.
    mine = (
        over_items(dataset, annotated.c.status, func.count(), func.sum(case((is_own, 1), else_=0)))
        .join(
            annotated,
            (annotated.c.dataset_id == dataset.id)
            & (annotated.c.position == queue_values.c.position),
        )
        .where(planned, annotated.c.annotator_id == (-1 if annotator is None else annotator.id))
        .group_by(annotated.c.status)
    )
    counts = {Status(status): (n, n_given) for status, n, n_given in connection.execute(mine)}
    (done, done_given), (skipped, skipped_given) = (
        counts.get(status, (0, 0)) for status in (Status.DONE, Status.SKIPPED)
    )
    if everybody and name not in everybody:
        return PersonProgress(name, beyond=done)
    if is_away:
        return PersonProgress(name, done_given, done=done_given, beyond=done - done_given)
    if not everybody:  # who has finished or skipped an item was given it
        assigned += done - done_given + skipped - skipped_given
        done_given, skipped_given = done, skipped
    beyond = done - done_given
    return PersonProgress(name, assigned, done=done_given, skipped=skipped_given, beyond=beyond)


def _is_annotated(dataset: DatasetRow, annotator: AnnotatorRow | None) -> ColumnElement[bool]:
    """Return the condition that somebody has annotated an item."""
    at = annotated.c.position == queue_values.c.position
    by = annotated.c.annotator_id == (-1 if annotator is None else annotator.id)
    own = select(annotated.c.position).where(annotated.c.dataset_id == dataset.id, at, by)
    return own.correlate(queue_values).exists()


def over_items(dataset: DatasetRow, *columns: ColumnElement[Any]) -> Select[Any]:
    """Select something of the ``queue_values`` of all items of a dataset."""
    return (
        select(*columns)
        .select_from(queue_values)
        .where(
            queue_values.c.dataset_id == dataset.id,
            queue_values.c.position < dataset.n_items,
        )
    )


def deal(connection: Connection, dataset: DatasetRow, *, anew: bool = False) -> None:
    """Give each item that is assigned to people its turn, which says to whom: see AssignedShare.

    Turns are counted over the items that the plan is about, so that shares are even whichever items
    are check items. An item keeps its turn; with ``anew`` all get new ones, if none of the people
    has begun.
    """
    settings, here = settings_of(connection, dataset.name), queue_values.c.dataset_id == dataset.id
    if not settings.assigned_to:
        return
    by_name = annotators_of(connection, dataset.id)
    has_begun = select(annotated.c.position).where(
        annotated.c.dataset_id == dataset.id,
        annotated.c.annotator_id.in_(
            [by_name[name].id for name in settings.assigned_to if name in by_name]
        ),
    )
    if anew and connection.execute(has_begun.limit(1)).first() is None:
        connection.execute(update(queue_values).where(here).values(turn=None))
    first = _n_dealt(connection, dataset)
    position = queue_values.c.position
    number = func.row_number().over(order_by=position) - 1 + first
    waiting = over_items(dataset, position, number.label("turn")).where(
        queue_values.c.turn.is_(None), is_planned(connection, dataset, settings)
    )
    dealt = waiting.subquery()
    giving = update(queue_values).where(here, position == dealt.c.position)
    connection.execute(giving.values(turn=dealt.c.turn))


def _n_dealt(connection: Connection, dataset: DatasetRow) -> int:
    turn = over_items(dataset, func.max(queue_values.c.turn))
    last: int | None = connection.execute(turn).scalar_one()
    return 0 if last is None else last + 1


def is_of_share(
    dataset: DatasetRow, share: AssignedShare, values: FromClause = queue_values
) -> ColumnElement[bool]:
    """Return the condition that an item is of this share: ``AssignedShare.has`` in SQL.

    ``values`` is the table ``queue_values``, or an alias of it.
    """
    back, position = share.steps_back, values.c.position
    turn: ColumnElement[int] = func.coalesce(values.c.turn, position)
    step = case(dict(enumerate(back)), value=(turn // share.people) % len(back))

    def rank(number: int) -> ColumnElement[int]:
        return (number - turn % share.people + share.people) * step % share.people

    reached: ColumnElement[int] = rank(share.number)
    for number, name in share.away:
        finished = people_with(dataset, Status.DONE).where(
            annotated.c.position == position, annotators.c.name == name
        )
        is_free = and_(rank(number) < rank(share.number), ~finished.correlate(values).exists())
        reached = reached - case((is_free, 1), else_=0)
    return reached < share.each

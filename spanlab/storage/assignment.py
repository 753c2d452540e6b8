"""What writing to the store does to plans and lists: it deals items, and people's rows follow them.

What comes next for whom is decided in the room ``worklists``.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    case,
    delete,
    func,
    or_,
    select,
    update,
)

from spanlab.schema import AnnotatorKind, AssignedShare, Status
from spanlab.storage.catalog import DatasetRow, annotators_of, settings_of
from spanlab.storage.engine import insert_new
from spanlab.storage.tables import (
    annotated,
    entrances,
    guidelines_read,
    looks,
    queue_items,
    queue_values,
    queues,
)

_OF_PEOPLE = (entrances, guidelines_read, looks)  # tables with a column "reviewer"
_OF_LISTS = (queues, queue_items)


def select_checks(connection: Connection, dataset: DatasetRow) -> Select[tuple[int]]:
    """Select the positions of a dataset's check items, of one with two labels twice."""
    by_name = annotators_of(connection, dataset.id)
    gold = (name for name, row in by_name.items() if row.kind is AnnotatorKind.GOLD)
    names = settings_of(connection, dataset.name).check_labels(gold)
    return select(annotated.c.position).where(
        annotated.c.dataset_id == dataset.id,
        annotated.c.position < dataset.n_items,
        annotated.c.status == Status.DONE.value,
        annotated.c.annotator_id.in_([by_name[name].id for name in sorted(names)]),
    )


def is_check(
    connection: Connection, dataset: DatasetRow, position: ColumnElement[int]
) -> ColumnElement[bool]:
    """Return the condition that the item at ``position`` is a check item."""
    return position.in_(select_checks(connection, dataset))


def over_planned(
    connection: Connection, dataset: DatasetRow, *columns: ColumnElement[Any]
) -> Select[Any]:
    """Select something of the ``queue_values`` of what a plan is about: all but check items."""
    at = queue_values.c.position
    here = (queue_values.c.dataset_id == dataset.id, at < dataset.n_items)
    planned = select(*columns).select_from(queue_values).where(*here)
    if settings_of(connection, dataset.name).known is None:
        return planned
    return planned.where(~is_check(connection, dataset, at))


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
    share = AssignedShare(0, len(settings.assigned_to), settings.overlap)
    turns, position = queue_values.c.turn, queue_values.c.position
    last, n_dealt = connection.execute(select(func.max(turns), func.count(turns)).where(here)).one()
    people, steps = share.people, share.steps
    begun = n_dealt - n_dealt % people
    in_round = connection.execute(select(turns).where(here, turns >= begun)).scalars()
    step, end = steps[begun // people % len(steps)], 0
    if {*in_round} != {_turn(share, at, step) for at in range(begun, n_dealt)}:
        # A round that has begun otherwise, by 1.0 say, goes on in the ring's order.
        n_dealt, end = last + 1, (last // people + 1) * people
    at = func.row_number().over(order_by=position) - 1 + n_dealt
    step_at = case(dict(enumerate(steps)), value=at // people % len(steps))
    turn = case((at < end, at), else_=_turn(share, at, step_at))
    waiting = over_planned(connection, dataset, position, turn.label("turn"))
    dealt = waiting.where(queue_values.c.turn.is_(None)).subquery()
    giving = update(queue_values).where(here, position == dealt.c.position)
    connection.execute(giving.values(turn=dealt.c.turn))


def _turn(share: AssignedShare, number: Any, step: Any) -> Any:
    """Return the turn of an item by how many were dealt before, in a round with this step.

    Each begins in the ring where the one before has ended: so shares are even amid a round, too.
    """
    people, place = share.people, number % share.people
    n_rings = place // (people // gcd(share.each, people))  # after which all have as many
    return number - place + (place * share.each + n_rings) * step % people


def rename_person(connection: Connection, dataset: DatasetRow, name: str, new: str) -> None:
    """Move a person's list, tests and read guidelines to another name.

    Who has a list under that name keeps that one with the check items that either has begun, and
    the rest of it is drawn anew.
    """
    mine, theirs = (rows_of(queue_items, dataset, person) for person in (name, new))
    if connection.execute(select(queues).where(*rows_of(queues, dataset, new))).first():
        at = select(queue_items.c.position).where(*theirs)
        ends = select(func.max(queue_items.c.place)).where(*theirs)
        behind = queue_items.c.place + 1 + (connection.execute(ends).scalar() or 0)
        own = select(annotated.c.position).where(*is_by(connection, dataset, new))
        begun = or_(queue_items.c.attempt > 0, queue_items.c.position.in_(own))
        given = queue_items.c.attempt.is_not(None), begun, queue_items.c.position.not_in(at)
        moving = update(queue_items).where(*mine, *given)
        connection.execute(moving.values(reviewer=new, place=behind))
        _forget_list(connection, dataset, name)
        anew = update(queues).where(*rows_of(queues, dataset, new))
        connection.execute(anew.values(basis=""))
    for table in _OF_LISTS:
        moved = update(table).where(*rows_of(table, dataset, name))
        connection.execute(moved.values(reviewer=new))
    for table in _OF_PEOPLE:
        where = rows_of(table, dataset, name)
        rows = [dict(row) for row in connection.execute(select(table).where(*where)).mappings()]
        connection.execute(delete(table).where(*where))
        if rows:
            renamed = [{**row, "reviewer": new} for row in rows]
            connection.execute(insert_new(connection, table), renamed)


def forget_person(connection: Connection, dataset: DatasetRow, name: str) -> None:
    """Delete a person's list, tests and read guidelines."""
    for table in _OF_PEOPLE:
        connection.execute(delete(table).where(*rows_of(table, dataset, name)))
    _forget_list(connection, dataset, name)


def _forget_list(connection: Connection, dataset: DatasetRow, name: str) -> None:
    for table in _OF_LISTS:
        connection.execute(delete(table).where(*rows_of(table, dataset, name)))


def is_by(connection: Connection, dataset: DatasetRow, name: str) -> list[ColumnElement[bool]]:
    """Return the conditions for what an annotator said, who may be unknown yet."""
    annotator = annotators_of(connection, dataset.id).get(name)
    number = -1 if annotator is None else annotator.id
    return [annotated.c.dataset_id == dataset.id, annotated.c.annotator_id == number]


def rows_of(table: Table, dataset: DatasetRow, reviewer: str) -> list[ColumnElement[bool]]:
    """Return the conditions for the rows of one person in a table that has a column "reviewer"."""
    return [table.c.dataset_id == dataset.id, table.c.reviewer == reviewer]

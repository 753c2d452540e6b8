"""Check items: which these are, who was given which, and where they stand in a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    delete,
    func,
    select,
    update,
)

from spanlab.schema import AnnotatorKind, Status
from spanlab.storage.catalog import DatasetRow, annotators_of, settings_of
from spanlab.storage.engine import insert_new, look_up_once
from spanlab.storage.tables import (
    annotated,
    annotators,
    entrances,
    guidelines_read,
    items,
    known_given,
    looks,
    queue_items,
    queues,
)

OF_PEOPLE = (known_given, entrances, guidelines_read, looks)  # tables with a column "reviewer"
_OF_LISTS = (queues, queue_items)


class CheckItem(NamedTuple):
    """A check item that somebody was given.

    ``attempt`` counts tests from 1, 0 is an item among others. ``status`` is what the person has
    made of it.
    """

    item_id: str
    attempt: int
    status: Status


@dataclass(frozen=True)
class CheckItems:
    """How many check items a dataset has, and which of them a person was given."""

    total: int
    given: tuple[CheckItem, ...]

    @property
    def hidden(self) -> tuple[CheckItem, ...]:
        """The check items that stand among a person's other items, in no test."""
        return tuple(item for item in self.given if not item.attempt)

    @property
    def tests(self) -> tuple[CheckItem, ...]:
        """The check items of all tests, of which their person knows."""
        return tuple(item for item in self.given if item.attempt)

    def test(self, attempt: int) -> tuple[CheckItem, ...]:
        """Return the items of one test."""
        return tuple(item for item in self.given if item.attempt == attempt)


def is_check(
    connection: Connection, dataset: DatasetRow, position: ColumnElement[int]
) -> ColumnElement[bool]:
    """Return the condition that the item at ``position`` is a check item."""
    return position.in_(_select_checks(connection, dataset))


def is_given(
    dataset: DatasetRow, reviewer: str, position: ColumnElement[int]
) -> ColumnElement[bool]:
    """Return the condition that the item at ``position`` was given to a person as a check item."""
    given = select(known_given.c.position).where(*_rows_of(known_given, dataset, reviewer))
    return position.in_(given)


def _select_checks(connection: Connection, dataset: DatasetRow) -> Select[tuple[int]]:
    by_name = annotators_of(connection, dataset.id)
    gold = (name for name, row in by_name.items() if row.kind is AnnotatorKind.GOLD)
    names = settings_of(connection, dataset.name).check_labels(gold)
    return _select_annotated(dataset, annotated.c.position).where(
        annotated.c.position < dataset.n_items,
        annotated.c.status == Status.DONE.value,
        annotated.c.annotator_id.in_([by_name[name].id for name in sorted(names)]),
    )


def _select_annotated(dataset: DatasetRow, column: ColumnElement[Any]) -> Select[Any]:
    """Select ``what`` of the annotations of a dataset, beside who made them."""
    is_author = (annotators.c.dataset_id == annotated.c.dataset_id) & (
        annotators.c.id == annotated.c.annotator_id
    )
    return select(column).join(annotators, is_author).where(annotated.c.dataset_id == dataset.id)


def _rows_of(table: Table, dataset: DatasetRow, reviewer: str) -> list[ColumnElement[bool]]:
    return [table.c.dataset_id == dataset.id, table.c.reviewer == reviewer]


def check_items_of(connection: Connection, dataset: DatasetRow, reviewer: str) -> CheckItems:
    """Return which check items a person was given, in the order of the dataset."""
    key = ("known", dataset.id, reviewer)
    return look_up_once(connection, key, lambda: _check_items(connection, dataset, reviewer))


def _check_items(connection: Connection, dataset: DatasetRow, reviewer: str) -> CheckItems:
    at = annotated.c.position == known_given.c.position
    mine = _select_annotated(dataset, annotated.c.status).where(at, annotators.c.name == reviewer)
    own = mine.correlate(known_given).scalar_subquery()
    rows = connection.execute(
        select(items.c.item_id, known_given.c.attempt, own)
        .select_from(known_given)
        .join(
            items,
            (items.c.dataset_id == dataset.id) & (items.c.position == known_given.c.position),
        )
        .where(*_rows_of(known_given, dataset, reviewer))
        .order_by(known_given.c.position)
    )
    given_items = (
        CheckItem(item, attempt, Status(status or Status.NOT_ANNOTATED))
        for item, attempt, status in rows
    )
    return CheckItems(n_checks(connection, dataset), tuple(given_items))


def n_checks(connection: Connection, dataset: DatasetRow) -> int:
    """Return how many check items a dataset has."""
    known = _select_checks(connection, dataset).distinct().subquery()
    return connection.execute(select(func.count()).select_from(known)).scalar_one()


def due(secret: str, n_others: int, rate: Fraction) -> int:
    """Return how many check items a list should have among its first ``n_others`` other items.

    ``rate`` is check items per other item. One is due at a place drawn by chance of every 1 / rate
    others; the draw of one secret is always the same.
    """
    block, remainder = divmod(n_others * rate.numerator, rate.denominator)
    return block + (draw(secret, f"block {block}") * rate.denominator < remainder * 2**64)


def unseen_checks(
    connection: Connection, dataset: DatasetRow, reviewer: str, secret: str
) -> list[int]:
    """Return the positions of check items that a person has not had, in an order drawn for them."""
    mine = _select_annotated(dataset, annotated.c.position).where(annotators.c.name == reviewer)
    given = select(known_given.c.position).where(*_rows_of(known_given, dataset, reviewer))
    unseen = _select_checks(connection, dataset).where(
        annotated.c.position.not_in(mine), annotated.c.position.not_in(given)
    )
    positions = {row.position for row in connection.execute(unseen)}
    return sorted(positions, key=lambda position: draw(secret, str(position)))


def give(
    connection: Connection,
    dataset: DatasetRow,
    reviewer: str,
    positions: Sequence[int],
    attempt: int = 0,
) -> None:
    """Store that a person gets check items: in a test, or among others."""
    key = {"dataset_id": dataset.id, "reviewer": reviewer, "attempt": attempt}
    rows = [{**key, "position": position} for position in positions]
    if rows:
        connection.execute(insert_new(connection, known_given), rows)


class GivenPosition(NamedTuple):
    """How a person got a check item: at which test, or after which other item before 1.1."""

    attempt: int
    after: int | None


def positions_given(
    connection: Connection, dataset: DatasetRow, reviewer: str
) -> dict[int, GivenPosition]:
    """Return how a person got each check item, by its position."""
    columns = (known_given.c.position, known_given.c.attempt, known_given.c.after)
    rows = connection.execute(select(*columns).where(*_rows_of(known_given, dataset, reviewer)))
    return {row.position: GivenPosition(row.attempt, row.after) for row in rows}


def take_unseen(connection: Connection, dataset: DatasetRow, reviewer: str, seen: set[int]) -> None:
    """Take from a person the check items, but those of tests, that are not of those ``seen``."""
    given = positions_given(connection, dataset, reviewer)
    unseen = [at for at, check in given.items() if not check.attempt and at not in seen]
    if unseen:
        mine = (*_rows_of(known_given, dataset, reviewer), known_given.c.position.in_(unseen))
        connection.execute(delete(known_given).where(*mine))


def draw(secret: str, purpose: str) -> int:
    """Draw a number below 2 ** 64: always the same, and nobody foretells it without the secret."""
    return int.from_bytes(sha256(f"{secret}\0{purpose}".encode()).digest()[:8])


def rename_person(connection: Connection, dataset: DatasetRow, name: str, new: str) -> None:
    """Move a person's list, check items, tests and read guidelines to another name.

    Who has a list under that name keeps that one, of which the rest is then drawn anew.
    """
    has_list = connection.execute(select(queues).where(*_rows_of(queues, dataset, new))).first()
    if has_list:
        _forget_list(connection, dataset, name)
        anew = update(queues).where(*_rows_of(queues, dataset, new))
        connection.execute(anew.values(basis=""))
    for table in _OF_LISTS:
        moved = update(table).where(*_rows_of(table, dataset, name))
        connection.execute(moved.values(reviewer=new))
    for table in OF_PEOPLE:
        where = _rows_of(table, dataset, name)
        rows = [dict(row) for row in connection.execute(select(table).where(*where)).mappings()]
        connection.execute(delete(table).where(*where))
        if rows:
            renamed = [{**row, "reviewer": new} for row in rows]
            connection.execute(insert_new(connection, table), renamed)


def forget_person(connection: Connection, dataset: DatasetRow, name: str) -> None:
    """Delete a person's list, check items, tests and read guidelines."""
    for table in OF_PEOPLE:
        connection.execute(delete(table).where(*_rows_of(table, dataset, name)))
    _forget_list(connection, dataset, name)


def _forget_list(connection: Connection, dataset: DatasetRow, name: str) -> None:
    for table in _OF_LISTS:
        connection.execute(delete(table).where(*_rows_of(table, dataset, name)))

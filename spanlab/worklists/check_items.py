"""Check items: which these are, who was given which, and when one is due in a list.

No reviewer is to know: whatever asks for them in somebody's name must not tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, func, select

from spanlab.schema import Permission, Status
from spanlab.storage import Store
from spanlab.storage.assignment import is_check, rows_of, select_checks
from spanlab.storage.catalog import DatasetRow, annotators_of
from spanlab.storage.engine import insert_new, look_up_once
from spanlab.storage.tables import annotated, checks_given, items


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


def given_to(store: Store, dataset: str, person: str) -> CheckItems:
    """Return which check items a person was given; only who may read the dataset may know."""
    store.require(Permission.READ, dataset)
    with store.reading(dataset) as (connection, row, _):
        return check_items_of(connection, row, person)


def check_ids(store: Store, dataset: str) -> frozenset[str]:
    """Return the ids of all check items; only who may read the dataset may know."""
    store.require(Permission.READ, dataset)
    with store.reading(dataset) as (connection, row, _):
        query = select(items.c.item_id).where(items.c.dataset_id == row.id)
        checks = is_check(connection, row, items.c.position)
        return frozenset(connection.execute(query.where(checks)).scalars())


def is_given(
    dataset: DatasetRow, reviewer: str, position: ColumnElement[int]
) -> ColumnElement[bool]:
    """Return the condition that the item at ``position`` was given to a person as a check item."""
    given = select(checks_given.c.position).where(*rows_of(checks_given, dataset, reviewer))
    return position.in_(given)


def check_items_of(connection: Connection, dataset: DatasetRow, reviewer: str) -> CheckItems:
    """Return which check items a person was given, in the order of the dataset."""
    key = ("check items", dataset.id, reviewer)
    return look_up_once(connection, key, lambda: _check_items(connection, dataset, reviewer))


def _check_items(connection: Connection, dataset: DatasetRow, reviewer: str) -> CheckItems:
    annotator, at = annotators_of(connection, dataset.id).get(reviewer), checks_given.c.position
    is_own = annotated.c.annotator_id == (-1 if annotator is None else annotator.id)
    own = and_(annotated.c.dataset_id == dataset.id, annotated.c.position == at, is_own)
    is_item = and_(items.c.dataset_id == dataset.id, items.c.position == at)
    rows = connection.execute(
        select(items.c.item_id, checks_given.c.attempt, annotated.c.status)
        .select_from(checks_given.join(items, is_item).outerjoin(annotated, own))
        .where(*rows_of(checks_given, dataset, reviewer))
        .order_by(at)
    )
    given_items = (
        CheckItem(item, attempt, Status(status or Status.NOT_ANNOTATED))
        for item, attempt, status in rows
    )
    return CheckItems(n_checks(connection, dataset), tuple(given_items))


def n_checks(connection: Connection, dataset: DatasetRow) -> int:
    """Return how many check items a dataset has."""
    checks = select_checks(connection, dataset).distinct().subquery()
    return connection.execute(select(func.count()).select_from(checks)).scalar_one()


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
    annotator = annotators_of(connection, dataset.id).get(reviewer)
    mine = select(annotated.c.position).where(
        annotated.c.dataset_id == dataset.id,
        annotated.c.annotator_id == (-1 if annotator is None else annotator.id),
    )
    given = select(checks_given.c.position).where(*rows_of(checks_given, dataset, reviewer))
    had = {*connection.execute(mine).scalars(), *connection.execute(given).scalars()}
    unseen = {*connection.execute(select_checks(connection, dataset)).scalars()} - had
    return sorted(unseen, key=lambda position: draw(secret, str(position)))


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
        connection.execute(insert_new(connection, checks_given), rows)


class GivenCheck(NamedTuple):
    """How a person got a check item: at which test, or after which other item before 1.1."""

    attempt: int
    after: int | None


def checks_of(connection: Connection, dataset: DatasetRow, reviewer: str) -> dict[int, GivenCheck]:
    """Return how a person got each check item, by its position."""
    columns = (checks_given.c.position, checks_given.c.attempt, checks_given.c.after)
    rows = connection.execute(select(*columns).where(*rows_of(checks_given, dataset, reviewer)))
    return {row.position: GivenCheck(row.attempt, row.after) for row in rows}


def take_unseen(connection: Connection, dataset: DatasetRow, reviewer: str, seen: set[int]) -> None:
    """Take from a person the check items, but those of tests, that are not of those ``seen``."""
    given = checks_of(connection, dataset, reviewer)
    unseen = [at for at, check in given.items() if not check.attempt and at not in seen]
    if unseen:
        mine = (*rows_of(checks_given, dataset, reviewer), checks_given.c.position.in_(unseen))
        connection.execute(delete(checks_given).where(*mine))


def draw(secret: str, purpose: str) -> int:
    """Draw a number below 2 ** 64: always the same, and nobody foretells it without the secret."""
    return int.from_bytes(sha256(f"{secret}\0{purpose}".encode()).digest()[:8])

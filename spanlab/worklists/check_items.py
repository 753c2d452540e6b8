"""Check items: which these are, who was given which, and when one is due in a list.

No reviewer is to know: whatever asks for them in somebody's name must not tell.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import Connection, and_, func, select

from spanlab.schema import Permission, Status
from spanlab.storage import Store
from spanlab.storage.assignment import is_by, is_check, rows_of, select_checks
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.engine import look_up_once
from spanlab.storage.tables import annotated, items, queue_items


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
    """Return which check items a person was given, in the order of the dataset.

    Only who may read the dataset may know.
    """
    store.require(Permission.READ, dataset)
    with store.reading(dataset) as (connection, row, _):
        key = ("check items", row.id, person)
        return look_up_once(connection, key, lambda: _check_items(connection, row, person))


def check_ids(store: Store, dataset: str) -> frozenset[str]:
    """Return the ids of all check items; only who may read the dataset may know."""
    store.require(Permission.READ, dataset)
    with store.reading(dataset) as (connection, row, _):
        query = select(items.c.item_id).where(items.c.dataset_id == row.id)
        checks = is_check(connection, row, items.c.position)
        return frozenset(connection.execute(query.where(checks)).scalars())


def _check_items(connection: Connection, dataset: DatasetRow, reviewer: str) -> CheckItems:
    own, at_item = (table.c.position == queue_items.c.position for table in (annotated, items))
    is_own = and_(own, *is_by(connection, dataset, reviewer))
    of_item = and_(at_item, items.c.dataset_id == dataset.id)
    rows = connection.execute(
        select(items.c.item_id, queue_items.c.attempt, annotated.c.status)
        .select_from(queue_items.join(items, of_item).outerjoin(annotated, is_own))
        .where(*rows_of(queue_items, dataset, reviewer), queue_items.c.attempt.is_not(None))
        .order_by(queue_items.c.position)
    )
    given = (
        CheckItem(name, attempt, Status(own or Status.NOT_ANNOTATED)) for name, attempt, own in rows
    )
    return CheckItems(n_checks(connection, dataset), tuple(given))


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


def unseen(
    connection: Connection,
    dataset: DatasetRow,
    secret: str,
    had: Collection[int],
    given: Collection[int] = (),
) -> list[int]:
    """Return the positions of check items but those ``had``, in an order drawn by the secret.

    What was ``given`` as a check item is one, even if its gold labels are gone.
    """
    checks = {*connection.execute(select_checks(connection, dataset)).scalars(), *given}
    return sorted(checks.difference(had), key=lambda position: draw(secret, str(position)))


def draw(secret: str, purpose: str) -> int:
    """Draw a number below 2 ** 64: always the same, and nobody foretells it without the secret."""
    return int.from_bytes(sha256(f"{secret}\0{purpose}".encode()).digest()[:8])

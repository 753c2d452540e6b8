"""What a person got of check items stands in their list."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_KEY = ("dataset_id", "reviewer")


class _Given(NamedTuple):
    """At which test somebody got a check item, or after which item, before there were lists."""

    attempt: int
    after: int | None


def upgrade() -> None:
    """Move check items to lists; who had no list yet gets one of all that they have seen."""
    op.add_column("queue_items", sa.Column("attempt", sa.Integer))
    connection, given = op.get_bind(), _table("known_given", "position", "attempt", "after")
    people: dict[tuple[int, str], dict[int, _Given]] = {}
    for row in connection.execute(sa.select(given)):
        checks = people.setdefault((row.dataset_id, row.reviewer), {})
        checks[row.position] = _Given(row.attempt, row.after)
    for key, checks in people.items():
        _move(connection, key, checks)
    op.drop_table("known_given")


def _table(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *map(sa.column, (*_KEY, *columns)))


def _move(connection: sa.Connection, key: tuple[int, str], given: Mapping[int, _Given]) -> None:
    """Store in a person's list how they got check items, those that are not in it behind it."""
    row = dict(zip(_KEY, key, strict=True))
    lists = _table("queues", "basis", "secret")
    listed = _table("queue_items", "place", "position", "handle", "twin", "attempt")
    mine = [listed.c[name] == value for name, value in row.items()]
    order = sa.select(listed.c.position).where(*mine).order_by(listed.c.place)
    positions = list(connection.execute(order).scalars())
    for position in {*positions} & given.keys():
        in_list = sa.update(listed).where(*mine, listed.c.position == position)
        connection.execute(in_list.values(attempt=given[position].attempt))
    begun = sa.select(lists.c.basis).where(*(lists.c[name] == row[name] for name in _KEY))
    if connection.execute(begun).first() is None:
        secret = {"secret": secrets.token_hex(16)}
        connection.execute(sa.insert(lists).values(row | {"basis": ""} | secret))
        unlisted = _own(connection, key) | given.keys()
    else:
        unlisted = given.keys() - {*positions}

    def at(position: int) -> tuple[int, ...]:
        check = given.get(position, _Given(0, None))
        if check.attempt:
            return 0, check.attempt, position
        return (1, position, 0) if check.after is None else (1, check.after, 1)

    seen = sorted(unlisted, key=at)
    last = next((each for each in (*positions, *seen) if each not in given), None)
    for place, position in enumerate(seen, len(positions)):
        check = given.get(position)
        last = position if check is None else last
        twin = last if check is not None and not check.attempt else None
        values = {"place": place, "position": position, "handle": secrets.token_hex(8)}
        values |= {"twin": twin, "attempt": check and check.attempt}
        connection.execute(sa.insert(listed).values(row | values))


def _own(connection: sa.Connection, key: tuple[int, str]) -> set[int]:
    """Return the positions of what a person has annotated."""
    who = sa.table("annotators", *map(sa.column, ("dataset_id", "id", "name")))
    said = sa.table("annotations", *map(sa.column, ("dataset_id", "annotator_id", "position")))
    datasets = sa.table("datasets", *map(sa.column, ("id", "n_items")))
    own = (
        sa.select(said.c.position)
        .join(who, sa.and_(who.c.dataset_id == said.c.dataset_id, who.c.id == said.c.annotator_id))
        .join(datasets, datasets.c.id == said.c.dataset_id)
        .where(said.c.dataset_id == key[0], who.c.name == key[1])
        .where(said.c.position < datasets.c.n_items)
    )
    return {*connection.execute(own).scalars()}

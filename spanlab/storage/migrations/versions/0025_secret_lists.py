"""What keeps check items from being told from others, and who has looked at others' marks."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Keep the order of every list; what is drawn of it from now on follows from its secret."""
    op.create_table(
        "looks",
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "position", "reviewer"),
        sa.ForeignKeyConstraint(["dataset_id", "position"], ["items.dataset_id", "items.position"]),
    )
    op.add_column("queues", sa.Column("secret", sa.Text, nullable=False, server_default=""))
    op.add_column("queue_items", sa.Column("twin", sa.Integer))
    op.add_column("queue_values", sa.Column("turn", sa.Integer))
    connection = op.get_bind()
    lists = _table("queues", "dataset_id", "reviewer", "secret")
    for row in connection.execute(sa.select(*lists.c)).all():
        here = lists.c.dataset_id == row.dataset_id, lists.c.reviewer == row.reviewer
        connection.execute(sa.update(lists).where(*here).values(secret=secrets.token_hex(16)))
        _add_twins(connection, row.dataset_id, row.reviewer)
    # Where items are assigned, their positions have said whose they are.
    datasets = _table("datasets", "id", "settings")
    values = _table("queue_values", "dataset_id", "position", "turn")
    assigned = sa.select(datasets.c.id).where(datasets.c.settings.like('%"assigned_to":["%'))
    updating = sa.update(values).where(values.c.dataset_id.in_(assigned))
    connection.execute(updating.values(turn=values.c.position))


def _table(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *map(sa.column, columns))


def _add_twins(connection: sa.Connection, dataset: int, reviewer: str) -> None:
    given = _table("known_given", "dataset_id", "reviewer", "position", "attempt")
    listed = _table("queue_items", "dataset_id", "reviewer", "position", "place", "twin")
    mine = [(t.c.dataset_id == dataset, t.c.reviewer == reviewer) for t in (given, listed)]
    chosen = sa.select(given.c.position, given.c.attempt).where(*mine[0])
    attempts = {row.position: row.attempt for row in connection.execute(chosen)}
    order = sa.select(listed.c.position).where(*mine[1]).order_by(listed.c.place)
    positions = connection.execute(order).scalars().all()
    twin = next((position for position in positions if position not in attempts), None)
    for position in positions:
        if position not in attempts:
            twin = position
        elif attempts[position] == 0:
            at = (*mine[1], listed.c.position == position)
            connection.execute(sa.update(listed).where(*at).values(twin=twin))

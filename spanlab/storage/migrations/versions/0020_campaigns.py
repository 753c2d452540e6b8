"""Campaigns: items with known answers, tests before somebody begins, guidelines that were read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables, empty."""
    op.create_table(
        "known_given",
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("after", sa.Integer),
        sa.PrimaryKeyConstraint("dataset_id", "reviewer", "position"),
        sa.UniqueConstraint("dataset_id", "reviewer", "after", name="known_given_after"),
        sa.ForeignKeyConstraint(["dataset_id", "position"], ["items.dataset_id", "items.position"]),
    )
    op.create_table(
        "entrances",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("score", sa.Float),
        sa.Column("passed", sa.Integer, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "reviewer", "attempt"),
    )
    op.create_table(
        "guidelines_read",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "reviewer", "version"),
    )

"""Traces that come in parts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two tables: parts waited in the memory of a server before."""
    op.create_table(
        "waiting_traces",
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("trace", sa.Text, nullable=False),
        sa.Column("came", sa.Float, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("version_read", sa.Integer, nullable=False),
        sa.Column("has_root", sa.Integer, nullable=False),
        sa.Column("items", sa.Text, nullable=False),
        sa.Column("until", sa.Float),
        sa.PrimaryKeyConstraint("dataset", "trace"),
    )
    op.create_table(
        "waiting_parts",
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("trace", sa.Text, nullable=False),
        sa.Column("part", sa.Text, nullable=False),
        sa.Column("parent", sa.Text),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("json", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset", "trace", "part"),
    )

"""Each person's own list of items."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two tables; lists are drawn when people come, with what they have seen at the front."""
    op.create_table(
        "queues",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("basis", sa.Text, nullable=False),
        sa.Column("n_before", sa.Integer),
        sa.PrimaryKeyConstraint("dataset_id", "reviewer"),
    )
    op.create_table(
        "queue_items",
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("handle", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "reviewer", "place"),
        sa.UniqueConstraint("dataset_id", "reviewer", "position", name="queue_items_position"),
        sa.UniqueConstraint("dataset_id", "reviewer", "handle", name="queue_items_handle"),
        sqlite_with_rowid=False,
    )

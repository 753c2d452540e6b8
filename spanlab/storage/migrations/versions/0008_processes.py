"""Processes that the items of a dataset share are stored once, node by node."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "processes",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("first_position", sa.Integer, nullable=False),
        sa.Column("stages", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "id"),
        sa.UniqueConstraint("dataset_id", "name", name="processes_name"),
    )
    op.create_table(
        "process_nodes",
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("process_id", sa.Integer, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("json", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "process_id", "place"),
        sa.UniqueConstraint("dataset_id", "process_id", "node", name="process_nodes_node"),
        sa.ForeignKeyConstraint(
            ["dataset_id", "process_id"], ["processes.dataset_id", "processes.id"]
        ),
    )

"""Items that a queue has offered are reserved for who got them."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Float, ForeignKeyConstraint, Integer, PrimaryKeyConstraint, Text

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "reservations",
        Column("dataset_id", Integer, nullable=False),
        Column("position", Integer, nullable=False),
        Column("reviewer", Text, nullable=False),
        Column("until", Float, nullable=False),
        PrimaryKeyConstraint("dataset_id", "position", "reviewer"),
        ForeignKeyConstraint(["dataset_id", "position"], ["items.dataset_id", "items.position"]),
    )

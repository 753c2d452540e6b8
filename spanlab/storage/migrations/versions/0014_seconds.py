"""An operation that ends an item says how long the item was worked on."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Float

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of the operations that are there nobody knows."""
    op.add_column("operations", Column("seconds", Float))

"""Several people may write to one log: the operations of an adjudication say whose they are."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the logs that are there are their annotators' own."""
    op.add_column("operations", Column("author", Text))

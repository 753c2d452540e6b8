"""A dataset says what Done makes of suggestions that nobody decided."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; datasets that are there take the default."""
    column = Column("undecided", Text, nullable=False, server_default="rejected")
    op.add_column("datasets", column)

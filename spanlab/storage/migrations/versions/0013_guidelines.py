"""Every operation says which version of the guidelines its author had."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; whoever made the operations that are there had none."""
    column = Column("guidelines", Integer, nullable=False, server_default="0")
    op.add_column("operations", column)

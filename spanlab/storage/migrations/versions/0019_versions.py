"""Datasets have versions that never change, and a bin."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; what is there is no version, and not in the bin."""
    for column in (
        sa.Column("deleted_at", sa.Text),
        sa.Column("version_of", sa.Integer),
        sa.Column("digest", sa.Text),
    ):
        op.add_column("datasets", column)

"""Links for people who came by another link; logs that nothing replaces and hashes join."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from spanlab.storage.tables import GUARD_STATEMENTS

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns and the triggers."""
    op.add_column("access_tokens", sa.Column("person", sa.Text))
    op.add_column("access_log", sa.Column("hash", sa.Text))
    for statement in GUARD_STATEMENTS[op.get_bind().dialect.name]:
        op.execute(statement)

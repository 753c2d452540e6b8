"""All settings of a dataset are in one column, as JSON."""

from __future__ import annotations

import json

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move the column ``undecided`` into the new one."""
    op.add_column("datasets", Column("settings", Text, nullable=False, server_default="{}"))
    connection = op.get_bind()
    for dataset, undecided in connection.execute(text("SELECT id, undecided FROM datasets")).all():
        row = {"dataset": dataset, "settings": json.dumps({"undecided": undecided})}
        connection.execute(
            text("UPDATE datasets SET settings = :settings WHERE id = :dataset"), row
        )
    op.drop_column("datasets", "undecided")

"""A table for the answers of models and retrievers, which PostgreSQL's workers share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_EARLIER = "spanlab_jobs.answers"  # where workers copied theirs to, until then


def upgrade() -> None:
    """Make the table; take over what an earlier spanlab has collected."""
    op.create_table(
        "answers",
        sa.Column("cache", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("cache", "key"),
    )
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        return
    if connection.execute(sa.text(f"SELECT to_regclass('{_EARLIER}')")).scalar() is not None:
        copied = f"SELECT cache, key, answer, extract(epoch FROM at) FROM {_EARLIER}"  # noqa: S608
        op.execute(f"INSERT INTO answers (cache, key, answer, at) {copied}")
        op.execute(f"DROP TABLE {_EARLIER}")

"""People have roles, programs have keys, and who did what is kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from spanlab.storage.tables import LOG_STATEMENTS

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _dataset(*, nullable: bool = True) -> sa.Column[int]:
    key = sa.ForeignKey("datasets.id", ondelete="CASCADE")
    return sa.Column("dataset_id", sa.Integer, key, nullable=nullable)


def upgrade() -> None:
    """Add the tables; nobody has a role yet, and operations so far name no subject."""
    op.add_column("operations", sa.Column("subject", sa.Text))
    op.create_table(
        "people",
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("email", sa.Text),
        *_texts("seen"),
    )
    op.create_table("roles", *_texts("subject"), _dataset(), *_texts("role", "granted_by", "at"))
    op.create_index("ix_roles_subject", "roles", ["subject"])
    op.create_table(
        "reviewer_names",
        _dataset(nullable=False),
        *_texts("subject", "name"),
        sa.PrimaryKeyConstraint("dataset_id", "subject"),
    )
    op.create_table(
        "access_tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        *_texts("kind", "label", "role", "made_by", "at"),
        _dataset(),
        sa.Column("expires", sa.Float),
        *(sa.Column(name, sa.Text) for name in ("revoked", "used", "worker", "code")),
    )
    op.create_table(
        "access_log",
        sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
        *_texts("at", "subject", "name", "action", "about"),
        sa.Column("dataset", sa.Text),
    )
    for statement in LOG_STATEMENTS[op.get_bind().dialect.name]:
        op.execute(statement)

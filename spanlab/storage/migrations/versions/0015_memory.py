"""Evidence that agents keep under the entities of claims, and what their tools have answered."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    Column,
    Float,
    ForeignKeyConstraint,
    Identity,
    Integer,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
)

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "memories",
        Column("id", Integer, Identity(), primary_key=True),
        *(Column(name, Text, nullable=False) for name in ("scope", "digest", "json")),
        Column("at", Float, nullable=False),
        Column("expires", Float),
        *(Column(name, Integer, nullable=False) for name in ("pinned", "blocked")),
        UniqueConstraint("scope", "digest", name="memories_digest"),
    )
    op.create_table(
        "memory_keys",
        *(Column(name, Text, nullable=False) for name in ("scope", "key")),
        *(Column(name, Integer, nullable=False) for name in ("pinned", "memory_id")),
        PrimaryKeyConstraint("scope", "key", "pinned", "memory_id"),
        ForeignKeyConstraint(["memory_id"], ["memories.id"], ondelete="CASCADE"),
    )
    op.create_index("memory_keys_memory", "memory_keys", ["memory_id"])
    for table, names in (
        ("memory_grams", ("scope", "gram", "key")),
        ("memory_aliases", ("alias", "key")),
    ):
        whole = names if len(names) == 3 else names[:1]
        op.create_table(
            table,
            *(Column(name, Text, nullable=False) for name in names),
            PrimaryKeyConstraint(*whole),
        )
    op.create_table(
        "tool_calls",
        *(Column(name, Text, nullable=False) for name in ("scope", "key")),
        Column("answer", Text),
        Column("expires", Float, nullable=False),
        PrimaryKeyConstraint("scope", "key"),
    )

"""The tables as they were first: what every later revision starts from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "datasets",
        sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("n_items", sa.Integer, nullable=False),
    )
    op.create_table(
        "loads",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), primary_key=True),
        sa.Column("started", sa.Text, nullable=False),
    )
    op.create_table(
        "languages",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("code", sa.Integer, nullable=False),
        sa.Column("lang", sa.Text, nullable=False),
        sa.Column("n_items", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "code"),
        sa.UniqueConstraint("dataset_id", "lang", name="languages_lang"),
    )
    op.create_table(
        "labels",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "label"),
    )
    op.create_table(
        "annotators",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("n_annotations", sa.Integer, nullable=False),
        sa.Column("n_done", sa.Integer, nullable=False),
        sa.Column("n_failed", sa.Integer, nullable=False),
        sa.Column("n_skipped", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "id"),
        sa.UniqueConstraint("dataset_id", "name", name="annotators_name"),
    )
    op.create_table(
        "items",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("item_id", sa.Text, nullable=False),
        sa.Column("json", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "position"),
        sa.UniqueConstraint("dataset_id", "item_id", name="items_item_id"),
    )
    op.create_table(
        "annotations",
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("annotator_id", sa.Integer, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("json", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "position", "annotator_id"),
        sa.ForeignKeyConstraint(["dataset_id", "position"], ["items.dataset_id", "items.position"]),
        sa.ForeignKeyConstraint(
            ["dataset_id", "annotator_id"], ["annotators.dataset_id", "annotators.id"]
        ),
    )
    op.create_table(
        "reviews",
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("annotator_id", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("snapshot", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "position", "annotator_id"),
        sa.ForeignKeyConstraint(
            ["dataset_id", "position", "annotator_id"],
            ["annotations.dataset_id", "annotations.position", "annotations.annotator_id"],
        ),
    )
    op.create_table(
        "operations",
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("annotator_id", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("json", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "position", "annotator_id", "version"),
        sa.UniqueConstraint("session", "seq", name="operations_session_seq"),
        sa.ForeignKeyConstraint(
            ["dataset_id", "position", "annotator_id"],
            ["reviews.dataset_id", "reviews.position", "reviews.annotator_id"],
        ),
    )
    op.create_table(
        "facets",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("block", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "name", "block"),
    )

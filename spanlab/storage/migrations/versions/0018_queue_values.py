"""What queues filter and order by stands in columns, no longer in blocks of numbers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from spanlab.schema import Annotation, Item
from spanlab.storage.annotations import annotation_values, position_values

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_PIECE = 1000  # positions at once
_KEY = ("dataset_id", "annotator_id", "position")
_VALUES = ("status", "prob", "n_labels", "n_claims")
_AT = "WHERE dataset_id = :dataset AND position BETWEEN :first AND :last"


def upgrade() -> None:
    """Add table, columns and index, and fill them from what is stored."""
    op.create_table(
        "queue_values",
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("dataset_id", "position")),
        sa.Column("lang", sa.Text, nullable=False),
        *(
            sa.Column(name, sa.Integer, nullable=False)
            for name in ("n_passages", "n_people", "n_labels", "n_claims")
        ),
        *(
            sa.Column(name, sa.Integer, nullable=False)
            for name in ("detector_labels", "detector_claims")
        ),
        *(
            sa.Column(name, sa.Float)
            for name in ("max_prob", "disagreement", "detector_disagreement")
        ),
        sa.PrimaryKeyConstraint("dataset_id", "position"),
        sqlite_with_rowid=False,
    )
    for column in (
        sa.Column("prob", sa.Float),
        sa.Column("n_labels", sa.Integer, nullable=False, server_default="0"),
        sa.Column("n_claims", sa.Integer, nullable=False, server_default="0"),
    ):
        op.add_column("annotations", column)
    connection = op.get_bind()
    last = sa.text("SELECT dataset_id, max(position) FROM items GROUP BY dataset_id")
    for dataset, position in connection.execute(last).all():
        for first in range(0, position + 1, _PIECE):
            _fill(connection, {"dataset": dataset, "first": first, "last": first + _PIECE - 1})
    op.create_index("annotations_values", "annotations", [*_KEY, *_VALUES])
    op.drop_table("facets")


def _fill(connection: sa.Connection, place: dict[str, int]) -> None:
    """Work out the columns of the items at some positions, and of their annotations."""
    stored = sa.text(f"SELECT position, annotator_id, json FROM annotations {_AT}")  # noqa: S608
    said: dict[int, list[Annotation]] = {}
    rows = []
    for position, annotator, json in connection.execute(stored, place):
        annotation = Annotation.model_validate_json(json)
        said.setdefault(position, []).append(annotation)
        key = {"dataset": place["dataset"], "position": position, "annotator": annotator}
        rows.append(key | annotation_values(annotation).columns())
    if rows:
        connection.execute(
            sa.text(
                "UPDATE annotations SET prob = :prob, n_labels = :n_labels, n_claims = :n_claims"
                " WHERE dataset_id = :dataset AND position = :position"
                " AND annotator_id = :annotator"
            ),
            rows,
        )
    values = []
    stored = sa.text(f"SELECT position, json FROM items {_AT}")  # noqa: S608
    for position, json in connection.execute(stored, place):
        annotations = said.get(position, [])
        numbers = [annotation_values(annotation) for annotation in annotations]
        row = position_values(Item.model_validate_json(json), annotations, numbers)
        values.append({"dataset_id": place["dataset"], "position": position, **row})
    if values:
        queue_values = sa.table("queue_values", *(sa.column(name) for name in values[0]))
        connection.execute(sa.insert(queue_values), values)

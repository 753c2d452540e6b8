"""All that came between the revisions 0016 and 0021, in one step."""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op

from spanlab.schema import Annotation, Item
from spanlab.storage.annotations import annotation_values, position_values
from spanlab.storage.tables import LOG_STATEMENTS

revision = "0021"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables and columns, and fill them from what is stored."""
    _own_jobs_of_the_api()
    _add_queue_values()
    for column in (
        sa.Column("deleted_at", sa.Text),
        sa.Column("version_of", sa.Integer),
        sa.Column("digest", sa.Text),
    ):
        op.add_column("datasets", column)
    _add_campaigns()
    _add_access()


_NAME = re.compile("api-([0-9a-f]{16})")  # after it came the whole id of the job


def _own_jobs_of_the_api() -> None:
    """Let a job of the JSON API own its dataset by id: any dataset of a certain name was one.

    A person may have called one so; but what the API takes for a job is also one of the jobs'
    database by its whole id, which asks for a dataset of this name, and people do not choose ids.
    """
    api_jobs = op.create_table(
        "api_jobs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id", ondelete="SET NULL")),
        sa.Column("total", sa.Integer, nullable=False),
    )
    names = ("id", "name", "created", "state", "n_items")
    datasets = sa.table("datasets", *map(sa.column, names))
    ready = sa.select(datasets).where(datasets.c.state == "ready")
    rows = [
        {"id": name[1], "created": row.created, "dataset_id": row.id, "total": row.n_items}
        for row in op.get_bind().execute(ready)
        if (name := _NAME.fullmatch(row.name))
    ]
    op.bulk_insert(api_jobs, rows)


_PIECE = 1000  # positions at once
_KEY = ("dataset_id", "annotator_id", "position")
_VALUES = ("status", "prob", "n_labels", "n_claims")
_AT = "WHERE dataset_id = :dataset AND position BETWEEN :first AND :last"


def _add_queue_values() -> None:
    """Keep what queues filter and order by in columns, no longer in blocks of numbers."""
    op.create_table(
        "queue_values",
        *_integers("dataset_id", "position"),
        *_texts("lang"),
        *_integers("n_passages", "n_people", "n_labels", "n_claims"),
        *_integers("detector_labels", "detector_claims"),
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
    stored = sa.text(f"SELECT position, annotator_id, json FROM annotations {_AT}")  # noqa: S608 - _AT is ours
    by_position: dict[int, list[Annotation]] = {}
    rows = []
    for position, annotator, json in connection.execute(stored, place):
        annotation = Annotation.model_validate_json(json)
        by_position.setdefault(position, []).append(annotation)
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
    stored = sa.text(f"SELECT position, json FROM items {_AT}")  # noqa: S608 - _AT is ours
    for position, json in connection.execute(stored, place):
        annotations = by_position.get(position, [])
        numbers = [annotation_values(annotation) for annotation in annotations]
        row = position_values(Item.model_validate_json(json), annotations, numbers)
        del row["unanimous"]  # which came later
        values.append({"dataset_id": place["dataset"], "position": position, **row})
    if values:
        queue_values = sa.table("queue_values", *(sa.column(name) for name in values[0]))
        connection.execute(sa.insert(queue_values), values)


def _add_campaigns() -> None:
    """Add items with known answers, tests before somebody begins, guidelines that were read."""
    op.create_table(
        "known_given",
        *_integers("dataset_id", "position"),
        *_texts("reviewer"),
        *_integers("attempt"),
        sa.Column("after", sa.Integer),
        sa.PrimaryKeyConstraint("dataset_id", "reviewer", "position"),
        sa.UniqueConstraint("dataset_id", "reviewer", "after", name="known_given_after"),
        sa.ForeignKeyConstraint(["dataset_id", "position"], ["items.dataset_id", "items.position"]),
    )
    op.create_table(
        "entrances",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        *_texts("reviewer"),
        *_integers("attempt"),
        sa.Column("score", sa.Float),
        *_integers("passed"),
        *_texts("at"),
        sa.PrimaryKeyConstraint("dataset_id", "reviewer", "attempt"),
    )
    op.create_table(
        "guidelines_read",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("datasets.id"), nullable=False),
        *_texts("reviewer"),
        *_integers("version"),
        *_texts("at"),
        sa.PrimaryKeyConstraint("dataset_id", "reviewer", "version"),
    )


def _add_access() -> None:
    """Add people, roles, keys and the log of who did what; operations so far name no subject."""
    op.add_column("operations", sa.Column("subject", sa.Text))
    op.create_table(
        "people",
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("email", sa.Text),
        *_texts("seen"),
    )
    op.create_table("roles", *_texts("subject"), _owned(), *_texts("role", "granted_by", "at"))
    op.create_index("ix_roles_subject", "roles", ["subject"])
    op.create_table(
        "reviewer_names",
        _owned(nullable=False),
        *_texts("subject", "name"),
        sa.PrimaryKeyConstraint("dataset_id", "subject"),
    )
    op.create_table(
        "access_tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        *_texts("kind", "label", "role", "made_by", "at"),
        _owned(),
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


def _integers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer, nullable=False) for name in names]


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _owned(*, nullable: bool = True) -> sa.Column[int]:
    """Return the column of the dataset that a row goes with."""
    key = sa.ForeignKey("datasets.id", ondelete="CASCADE")
    return sa.Column("dataset_id", sa.Integer, key, nullable=nullable)

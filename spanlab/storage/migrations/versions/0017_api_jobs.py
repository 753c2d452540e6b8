"""A job of the JSON API owns its dataset by id; until now any dataset of a certain name was one."""

from __future__ import annotations

import re

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, Text, column, select, table

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_NAME = re.compile("api-([0-9a-f]{16})")  # after it came the whole id of the job


def upgrade() -> None:
    """Add the table, with the datasets that are called like jobs.

    A person may have called one so; but what the API takes for a job is also one of the jobs'
    database by its whole id, which asks for a dataset of this name, and people do not choose ids.
    """
    ours = op.create_table(
        "api_jobs",
        Column("id", Text, primary_key=True),
        Column("created", Text, nullable=False),
        Column("dataset_id", Integer, ForeignKey("datasets.id", ondelete="SET NULL")),
        Column("total", Integer, nullable=False),
    )
    names = ("id", "name", "created", "state", "n_items")
    datasets = table("datasets", *map(column, names))
    ready = select(datasets).where(datasets.c.state == "ready")
    rows = [
        {"id": called[1], "created": row.created, "dataset_id": row.id, "total": row.n_items}
        for row in op.get_bind().execute(ready)
        if (called := _NAME.fullmatch(row.name))
    ]
    op.bulk_insert(ours, rows)

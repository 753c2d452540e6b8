"""Facets for the table of items: how many passages, labels and claims there are."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

from spanlab.schema import Annotation, Item
from spanlab.storage import facets

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_ITEMS = text(
    "SELECT position, json FROM items WHERE dataset_id = :dataset"
    " AND position >= :start AND position < :stop"
)
_SAID = text(
    "SELECT position, annotator_id, json FROM annotations WHERE dataset_id = :dataset"
    " AND position >= :start AND position < :stop"
    """ AND (json LIKE '%"label"%' OR json LIKE '%"claims"%')"""
)


def upgrade() -> None:
    """Count what is stored."""
    connection = op.get_bind()
    last = text("SELECT dataset_id, max(position) FROM items GROUP BY dataset_id")
    for dataset, position in connection.execute(last).all():
        for start in range(0, position + 1, facets.BLOCK):
            place = {"dataset": dataset, "start": start, "stop": start + facets.BLOCK}
            changes = facets.Changes()
            for at, json in connection.execute(_ITEMS, place):
                item = Item.model_validate_json(json)
                changes.set(facets.PASSAGES, at, len(item.passages))
            for at, annotator, json in connection.execute(_SAID, place):
                changes.say(at, annotator, Annotation.model_validate_json(json))
            changes.write(connection, dataset)

"""Full-text search over questions, answers, ids and comments."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Connection, text

from spanlab.schema import Annotation, Item
from spanlab.storage import search

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_PIECE = 1000  # positions indexed at once
_TABLES = {
    # detail=none: which rows have a term is all that is asked. It keeps its terms, for deletion.
    # prefix=1: a search for one Chinese character has thousands of terms that begin with it.
    "sqlite": (
        "CREATE VIRTUAL TABLE item_search USING fts5"
        "(words, tokenize = 'ascii', detail = none, columnsize = 0, prefix = '1')",
    ),
    "postgresql": (
        "CREATE TABLE item_search (rowid BIGINT PRIMARY KEY, words tsvector NOT NULL)",
        "CREATE INDEX item_search_words ON item_search USING gin (words)",
    ),
}
_ITEMS = text(
    "SELECT position, json FROM items"
    " WHERE dataset_id = :dataset AND position >= :start AND position < :stop"
)
_SAID = text(
    "SELECT position, annotator_id, json FROM annotations"
    " WHERE dataset_id = :dataset AND position >= :start AND position < :stop"
    """ AND (json LIKE '%"note"%' OR json LIKE '%"label"%')"""
)


def upgrade() -> None:
    """Make the table and fill it from what is stored."""
    connection = op.get_bind()
    for statement in _TABLES[connection.dialect.name]:
        op.execute(statement)
    last = text("SELECT dataset_id, max(position) FROM items GROUP BY dataset_id")
    for dataset, position in connection.execute(last).all():
        for start in range(0, position + 1, _PIECE):
            search.add(connection, dataset, _entries(connection, dataset, start))


def _entries(connection: Connection, dataset: int, start: int) -> list[search.Entry]:
    place = {"dataset": dataset, "start": start, "stop": start + _PIECE}
    entries = [
        search.of_item(position, Item.model_validate_json(json))
        for position, json in connection.execute(_ITEMS, place)
    ]
    entries += [
        search.of_annotation(position, author, Annotation.model_validate_json(json))
        for position, author, json in connection.execute(_SAID, place)
    ]
    return entries

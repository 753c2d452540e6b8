"""A facet for blind queues: how much detectors disagree, whatever people said."""

from __future__ import annotations

import math

import numpy as np
from alembic import op
from sqlalchemy import Connection, text

from spanlab.labels import disagreement
from spanlab.schema import Annotation

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_BLOCK = 4096
_FACET = text(
    "SELECT block, data FROM facets WHERE dataset_id = :dataset AND name = :name ORDER BY block"
)
_ADD = text(
    "INSERT INTO facets (dataset_id, name, block, data)"
    " VALUES (:dataset, 'disagreement/detectors', :block, :data)"
)
_DETECTORS = text(
    "SELECT annotations.json FROM annotations JOIN annotators"
    " ON annotators.dataset_id = annotations.dataset_id"
    " AND annotators.id = annotations.annotator_id"
    " WHERE annotations.dataset_id = :dataset AND position = :position"
    " AND kind = 'detector' AND status = 'done'"
)


def upgrade() -> None:
    """Copy the disagreement of all, and work out anew what people have a part in."""
    connection = op.get_bind()
    connection.execute(text("DELETE FROM facets WHERE name = 'disagreement/detectors'"))
    for dataset in connection.execute(text("SELECT id FROM datasets")).scalars().all():
        people = dict(_blocks(connection, dataset, "people"))
        for block, data in _blocks(connection, dataset, "disagreement"):
            scores = np.frombuffer(data, dtype="<f8").copy()
            counts = np.frombuffer(people.get(block, b""), dtype="<u2")[: len(scores)]
            for place in np.flatnonzero(counts):
                scores[place] = _score(connection, dataset, block * _BLOCK + int(place))
            row = {"dataset": dataset, "block": block, "data": scores.tobytes()}
            connection.execute(_ADD, row)


def _blocks(connection: Connection, dataset: int, name: str) -> list[tuple[int, bytes]]:
    rows = connection.execute(_FACET, {"dataset": dataset, "name": name})
    return [(block, bytes(data)) for block, data in rows]


def _score(connection: Connection, dataset: int, position: int) -> float:
    rows = connection.execute(_DETECTORS, {"dataset": dataset, "position": position}).scalars()
    found = [Annotation.model_validate_json(each) for each in rows]
    score = disagreement(found) if len(found) > 1 else None
    return math.nan if score is None else score

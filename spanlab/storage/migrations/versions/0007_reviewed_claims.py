"""Reviews of annotations that were imported with claims: the claims are part of their state."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

from spanlab.oplog import ReviewState
from spanlab.schema import Annotation
from spanlab.storage.items import to_json

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_WITH_CLAIMS = text(
    "SELECT dataset_id, position, annotator_id, snapshot, state FROM reviews"
    " WHERE snapshot LIKE '%\"claims\"%'"
)
_SET = text(
    "UPDATE reviews SET state = :state WHERE dataset_id = :dataset_id"
    " AND position = :position AND annotator_id = :annotator_id"
)


def upgrade() -> None:
    """Give each state the claims of its snapshot; no operation could change them so far."""
    connection = op.get_bind()
    for row in connection.execute(_WITH_CLAIMS).mappings().all():
        imported = ReviewState.of(Annotation.model_validate_json(row["snapshot"]))
        state = ReviewState.model_validate_json(row["state"])
        changed = state.model_copy(update={"claims": imported.claims})
        connection.execute(_SET, {**row, "state": to_json(changed)})

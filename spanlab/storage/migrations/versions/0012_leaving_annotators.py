"""The log of operations can go with its annotator, too, not only with its whole dataset."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_SQLITE = (
    "DROP TRIGGER operations_no_delete",
    """
CREATE TRIGGER operations_no_delete BEFORE DELETE ON operations
WHEN (SELECT state FROM datasets WHERE id = OLD.dataset_id) <> 'deleting'
    AND (SELECT kind FROM annotators
        WHERE dataset_id = OLD.dataset_id AND id = OLD.annotator_id) <> 'leaving'
BEGIN
    SELECT RAISE(ABORT, 'the log of operations is append-only');
END
""",
)
_POSTGRESQL = (
    """
CREATE OR REPLACE FUNCTION operations_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND (
        (SELECT state FROM datasets WHERE id = OLD.dataset_id) = 'deleting'
        OR (SELECT kind FROM annotators
            WHERE dataset_id = OLD.dataset_id AND id = OLD.annotator_id) = 'leaving'
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the log of operations is append-only';
END $$
""",
)


def upgrade() -> None:
    """Replace the triggers."""
    statements = _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL
    for statement in statements:
        op.execute(statement)

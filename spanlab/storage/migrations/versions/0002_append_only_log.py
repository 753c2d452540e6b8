"""The log of operations refuses change: only with its whole dataset can it go."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SQLITE = (
    """
CREATE TRIGGER operations_no_update BEFORE UPDATE ON operations
BEGIN
    SELECT RAISE(ABORT, 'the log of operations is append-only');
END
""",
    """
CREATE TRIGGER operations_no_delete BEFORE DELETE ON operations
WHEN (SELECT state FROM datasets WHERE id = OLD.dataset_id) <> 'deleting'
BEGIN
    SELECT RAISE(ABORT, 'the log of operations is append-only');
END
""",
)
_POSTGRESQL_FUNCTION = """
CREATE FUNCTION operations_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE'
        AND (SELECT state FROM datasets WHERE id = OLD.dataset_id) = 'deleting' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the log of operations is append-only';
END $$
"""
_POSTGRESQL_TRIGGER = """
CREATE TRIGGER operations_append_only BEFORE UPDATE OR DELETE ON operations
FOR EACH ROW EXECUTE FUNCTION operations_append_only()
"""


def upgrade() -> None:
    """Add the triggers."""
    if op.get_bind().dialect.name == "sqlite":
        for trigger in _SQLITE:
            op.execute(trigger)
    else:
        op.execute(_POSTGRESQL_FUNCTION)
        op.execute(_POSTGRESQL_TRIGGER)

"""Where databases begin that can be brought up to date; new ones are made from ``tables``."""

from __future__ import annotations

revision = "0016"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: no database is older."""

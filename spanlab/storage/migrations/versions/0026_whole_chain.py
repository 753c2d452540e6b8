"""Every entry of the log of access has a hash, those from before there were hashes, too."""

from __future__ import annotations

from alembic import op
from sqlalchemy import select

from spanlab.storage.access import rewrite_log
from spanlab.storage.tables import access_log

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Chain the entries anew where some have no hash: an entry without one is a changed one now."""
    bare = select(access_log.c.id).where(access_log.c.hash.is_(None)).limit(1)
    if op.get_bind().execute(bare).first() is not None:
        rewrite_log(op.get_bind())

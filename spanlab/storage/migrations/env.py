"""Runs the revisions on the connection that ``spanlab.storage.upgrade`` has opened and locked."""

from __future__ import annotations

from alembic import context

from spanlab.storage.tables import metadata
from spanlab.storage.upgrade import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
context.run_migrations()

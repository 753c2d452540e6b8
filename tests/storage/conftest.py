"""The same tests on both databases: an SQLite file, and a real PostgreSQL server."""

from storage_fixtures import (
    empty,
    migrated_database,
    migrated_file,
    new_database,
    record,
    said,
    settings,
    store,
)

__all__ = [
    "empty",
    "migrated_database",
    "migrated_file",
    "new_database",
    "record",
    "said",
    "settings",
    "store",
]

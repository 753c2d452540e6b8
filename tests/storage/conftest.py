"""The same tests on both databases: an SQLite file, and a real PostgreSQL server."""

from storage_fixtures import *  # noqa: F403 - all of its fixtures, by its __all__

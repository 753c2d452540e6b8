"""Jobs with real workers: processes of `spanlab worker` on SQLite, or sharing a PostgreSQL."""

from jobs_fixtures import model, settings, shared_settings, where, worker

__all__ = ["model", "settings", "shared_settings", "where", "worker"]

"""What the jobs' database has to make up for in DBOS, which says when it no longer has to."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from spanlab.jobs import database
from spanlab.settings import Settings


def test_sqlite_has_the_clock_that_dbos_reads_whatever_its_version(settings: Settings) -> None:
    database.prepare(settings)
    before = time.time()
    with database.connection(settings) as connection:
        told = connection.execute(text("SELECT unixepoch('subsec')")).scalar_one()
    assert before - 1 < told < time.time() + 1


def test_dbos_still_asks_pythons_version_for_sqlites_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it asks SQLite's, ``database._lend_clock`` can go."""
    from dbos import _migration, _sys_db

    later = SimpleNamespace(version_info=(3, 12), maxsize=0)
    monkeypatch.setattr(_migration, "sys", later)
    monkeypatch.setattr(_sys_db, "sys", later)
    assert _migration.get_sqlite_timestamp_expr() == "(unixepoch('subsec') * 1000)"
    sqlite: Any = SimpleNamespace(engine=SimpleNamespace(dialect=SimpleNamespace(name="sqlite")))
    assert "unixepoch" in str(_sys_db.SystemDatabase._now_ms_sql(sqlite))

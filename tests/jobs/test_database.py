"""What the jobs' database has to make up for in DBOS, which says when it no longer has to."""

from __future__ import annotations

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbos import _serialization
from sqlalchemy import text

from spanlab.base.errors import StoreError
from spanlab.base.settings import Settings
from spanlab.jobs import database


def test_sqlite_has_the_clock_that_dbos_reads_whatever_its_version(settings: Settings) -> None:
    database.prepare(settings)
    before = time.time()
    with database.connection(settings) as connection:
        told = connection.execute(text("SELECT unixepoch('subsec')")).scalar_one()
    assert before - 1 < told < time.time() + 1


def test_dbos_reads_pickles_in_the_one_method_that_refuses_them(settings: Settings) -> None:
    """Where it reads them elsewhere, too, ``database._set_up_dbos`` has to refuse there."""
    import dbos

    sources = Path(dbos.__file__).parent.rglob("*.py")
    lines = [line.strip() for file in sources for line in file.read_text().splitlines()]
    assert [line for line in lines if re.search(r"pickle\W+(loads?|Unpickler)\b", line)] == [
        "return pickle.loads(pickled_data)"
    ]
    assert [line for line in lines if re.search(r"\b(import|from) \w*(pickle|dill)", line)] == [
        "import pickle"
    ]
    database.prepare(settings)
    for read in (_serialization.deserialize_value, _serialization.deserialize_args):
        with pytest.raises(StoreError, match="stored as a Python pickle"):
            read("gASVAgAAAAAAAABOLg==", "py_pickle", dbos.DBOSPortableJSONSerializer())


def test_dbos_still_asks_pythons_version_for_sqlites_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it asks SQLite's, ``database._lend_clock`` can go."""
    from dbos import _migration, _sys_db

    later = SimpleNamespace(version_info=(3, 12), maxsize=0)
    monkeypatch.setattr(_migration, "sys", later)
    monkeypatch.setattr(_sys_db, "sys", later)
    assert _migration.get_sqlite_timestamp_expr() == "(unixepoch('subsec') * 1000)"
    sqlite: Any = SimpleNamespace(engine=SimpleNamespace(dialect=SimpleNamespace(name="sqlite")))
    assert "unixepoch" in str(_sys_db.SystemDatabase._now_ms_sql(sqlite))

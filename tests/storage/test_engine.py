"""Database URLs: which are understood, and what is said of the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spanlab.errors import StoreError, UsageError
from spanlab.settings import Settings
from spanlab.storage import Store
from spanlab.storage.engine import Database


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("postgres://me:secret@host/db", id="postgres"),
        pytest.param("postgresql://me:secret@host/db", id="postgresql"),
        pytest.param("postgresql+psycopg://me:secret@host/db", id="with driver"),
    ],
)
def test_every_spelling_of_postgresql_is_understood(url: str) -> None:
    database = Database(url)
    assert database.url.drivername == "postgresql+psycopg"
    assert database.path is None
    assert str(database) == "postgresql+psycopg://me:***@host/db"
    database.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("spanlab.db", "'spanlab.db' is not a database URL", id="a path"),
        pytest.param("mysql://host/db", "no database of the kind 'mysql'", id="another database"),
        pytest.param("sqlite://", "in memory forgets everything", id="in memory"),
        pytest.param("sqlite:///:memory:", "in memory forgets everything", id="named memory"),
    ],
)
def test_other_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Database(url)


def test_a_missing_driver_names_the_extra_to_install() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from spanlab.storage.engine import Database\n"
        "Database('postgresql://host/db')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UsageError: PostgreSQL needs the driver psycopg" in done.stderr
    assert "pip install 'spanlab[postgres]'" in done.stderr


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://me:secret@/db?host={tmp_path}"
    with pytest.raises(StoreError, match=r"postgresql\+psycopg://me:\*\*\*@/db") as caught:
        Store.open(Settings(home=tmp_path, database_url=url))
    assert "secret" not in str(caught.value)

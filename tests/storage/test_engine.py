"""Database URLs: which are understood, and what is said of the others."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from traceback import format_exception

import pytest
from commands import run_here

from spanlab.base.errors import StoreError, UsageError
from spanlab.base.settings import Settings
from spanlab.storage import Store, engine, upgrade
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
        pytest.param("postgresql://me:secret@h:abc/db", "port .* not a number", id="bad port"),
        pytest.param("postgresql://me:secret:h/db", "port .* not a number", id="no @"),
        pytest.param("postgresql://me:secret@h:1,i:1/db", r"\?host=one", id="hosts with ports"),
        pytest.param("postgresql://me:secret@h,i/db", r"\?host=one", id="several hosts"),
        pytest.param("postgresql://me:secret@/db?host=h,i&port=1,2,3", "ports", id="more ports"),
        pytest.param("postgresql://me:s@secret@h/db", "%40", id="@ in the password"),
        pytest.param("postgresql//me:secret@h/db", "may hold a password", id="mistyped"),
        pytest.param("host=h password=secret", "may hold a password", id="another notation"),
        pytest.param("sqlite://me:secret@h/db", "SQLite database is a file", id="file of a host"),
    ],
)
def test_other_urls_are_refused_without_their_passwords(
    url: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Database(url)
    assert "secret" not in "".join(format_exception(caught.value))
    for command in (["datasets"], ["jobs", "list"], ["worker"]) if "secret" in url else ():
        home = {"SPANLAB_HOME": str(tmp_path), "SPANLAB_DATABASE_URL": url}
        done = run_here(command, tmp_path, os.environ | home)
        assert done.returncode in {1, 2}
        assert done.stderr.startswith("spanlab: ")
        assert "secret" not in done.stdout + done.stderr


URL = "postgresql://me@host/db?password=secret&sslmode=require"


def test_a_password_among_the_options_counts_and_is_hidden() -> None:
    database = Database(URL)
    assert database.url.password == "secret"
    assert database.url.query["sslmode"] == "require"
    shown = (
        f"{database} {database.url} {database.engine!r} {Settings(home=Path(), database_url=URL)}"
    )
    assert "secret" not in shown
    database.close()


def test_a_file_that_another_program_keeps_locked_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0)
    url = f"sqlite:///{tmp_path / 'spanlab.db'}"
    with Store.open(Settings(home=tmp_path, database_url=url)) as store:
        with closing(sqlite3.connect(tmp_path / "spanlab.db")) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert store.datasets() == []
            with pytest.raises(StoreError, match="another program keeps it locked; do it again"):
                store.import_records("d", [])
        store.import_records("d", [])


def test_a_server_that_is_not_there_is_named_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "_AWAY_SECONDS", 0.0)  # it is waited for in test_jobs.py
    url = f"postgresql://me:secret@/db?host={tmp_path}"
    with pytest.raises(StoreError, match=r"postgresql\+psycopg://me:\*\*\*@/db") as caught:
        Store.open(Settings(home=tmp_path, database_url=url))
    assert "secret" not in str(caught.value)

"""A database of its own for each test: a copy of one file, which is cheaper than making tables.

Chance is the same in every run: what a list is drawn by is known.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest

from spanlab.base.settings import Settings
from spanlab.storage import Store
from spanlab.worklists import drawing


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file that has all tables; closed, so that copying it is safe."""
    home = tmp_path_factory.mktemp("migrated")
    path = home / "spanlab.db"
    Store.open(Settings(home=home, database_url=f"sqlite:///{path}")).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture(autouse=True)
def _known_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lists be drawn alike in every run, by a secret of its own each."""
    numbers = count()
    monkeypatch.setattr(
        drawing, "token_hex", lambda size: sha256(b"%d" % next(numbers)).hexdigest()[: 2 * size]
    )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, migrated_file: Path) -> Iterator[Store]:
    """An open store without datasets, of the database that ``Settings.read`` names."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(migrated_file, home)
    monkeypatch.setenv("SPANLAB_HOME", str(home))
    for name in ("SPANLAB_DATABASE_URL", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    with Store.open() as opened:
        yield opened

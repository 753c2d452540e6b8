"""Database URLs: which are understood, and what is said of the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
from postgres import Cluster

from spanlab.base.settings import Settings
from spanlab.data.backup import back_up, restore
from spanlab.schema import Item, Record
from spanlab.storage import Store


def test_a_missing_driver_names_the_extra_to_install() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from spanlab.storage.engine import Database\n"
        "Database('postgresql://host/db')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UsageError: PostgreSQL needs the driver psycopg" in done.stderr
    assert "pip install 'spanlab[postgres]'" in done.stderr


def test_postgresql_counts_what_came_at_once_and_searches_it_without_waiting_for_its_vacuum(
    server: Cluster, tmp_path: Path
) -> None:
    """Unless it has counted, it takes n² steps to find a word in n items."""
    url, restored = (server.url(server.new_database()) for _ in range(2))
    records = [Record(item=Item(id=f"i{n}", answer=f"word{n}")) for n in range(1200)]
    with Store.open(Settings(home=tmp_path, database_url=url)) as store:
        store.import_records("d", records)
    back_up(tmp_path / "copy", Settings(home=tmp_path, database_url=url))
    restore(tmp_path / "copy", Settings(home=tmp_path, database_url=restored))
    for database in (url, restored):
        with psycopg.connect(database) as connection:
            counted = connection.execute(
                "SELECT reltuples FROM pg_class WHERE relname IN ('items', 'item_search')"
            )
            assert counted.fetchall() == [(1200,), (1200,)]

"""Errors of spanlab's own are shown as errors on every page, not as a fault of the app."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from spanlab.app import navigation
from spanlab.schema import Item, Record
from spanlab.storage import Store


@pytest.mark.parametrize("table", ["annotators", "items"])
def test_a_database_that_lacks_something_is_said(
    store: Store, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its threads would outlive the test, and draw numbers while others' examples are drawn.
    monkeypatch.setattr(navigation, "start_embedded_worker", lambda: None)
    store.import_records("d", [Record(item=Item(id="a", answer="one"))])
    app = AppTest.from_string("from spanlab.app.navigation import run\nrun()", default_timeout=30)
    app.query_params.update({"dataset": "d", "reviewer": "Ada"})
    app.run()
    assert not app.exception
    file = Path(os.environ["SPANLAB_HOME"]) / "spanlab.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA legacy_alter_table = ON")
        database.execute(f"ALTER TABLE {table} RENAME TO gone")
        database.commit()
    app.run()
    assert not app.exception
    assert f"no such table: {table}" in app.error[0].value.replace("\\", "")

"""A store that is closed while a thread still reads leaves no connection open."""

from __future__ import annotations

import gc

from sqlalchemy import text

from spanlab.base.settings import Settings
from spanlab.storage.engine import Database


def test_a_connection_that_comes_back_after_closing_is_closed(settings: Settings) -> None:
    database = Database(settings.database_url)
    with database.reading() as connection:
        kept = connection.connection.driver_connection
        database.close()
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
    if not database.is_sqlite:
        assert kept is not None
        assert kept.closed
    gc.collect()  # an open connection that nobody has any more is a warning, and so an error here
    with database.reading() as connection:  # who goes on with it has another pool
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
    database.close()

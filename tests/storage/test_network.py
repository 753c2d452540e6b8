"""Connections that notice a network that has fallen silent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ports import free_port
from postgres import postgres
from sqlalchemy import create_engine, make_url, text

from spanlab.jobs.database import url_of
from spanlab.settings import Settings
from spanlab.storage.engine import Database
from spanlab.storage.urls import watchful

WATCHED = {"tcp_keepalives_idle": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "10000"}


@pytest.fixture(scope="module")
def over_tcp() -> Iterator[str]:
    """The URL of an empty database that is reached as over a network."""
    with postgres("127.0.0.1", free_port()) as new_database:
        yield new_database()


def test_the_server_watches_the_connections_of_stores_and_jobs(
    over_tcp: str, tmp_path: object
) -> None:
    store = Database(over_tcp).engine
    settings = Settings.model_validate({"home": tmp_path, "database_url": over_tcp})
    jobs = create_engine(make_url(url_of(settings)).set(drivername="postgresql+psycopg"))
    for engine in (store, jobs):
        with engine.connect() as connection:
            shown = {
                name: connection.execute(text(f"SHOW {name}")).scalar_one() for name in WATCHED
            }
        engine.dispose()
        assert shown == WATCHED


def test_what_a_url_says_itself_stays() -> None:
    own = "postgresql://me@host/db?connect_timeout=3&options=-c%20work_mem%3D64MB"
    query = watchful(make_url(own)).query
    assert query["connect_timeout"] == "3"
    assert query["keepalives_idle"] == "5"
    assert str(query["options"]).endswith("-c tcp_user_timeout=10000 -c work_mem=64MB")

"""Connections that notice a network that has fallen silent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ports import free_port
from postgres import postgres
from sqlalchemy import create_engine, make_url, text

from spanlab.base.errors import StoreError
from spanlab.base.settings import Settings
from spanlab.jobs.database import url_of
from spanlab.oplog.operations import CommentSpan, SentOperation
from spanlab.schema import Item, Record
from spanlab.storage import Store
from spanlab.storage.engine import Database, watchful

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


def test_two_who_review_while_their_connections_are_cut_lose_nothing_and_write_nothing_twice(
    over_tcp: str, tmp_path: Path
) -> None:
    """Each sends an operation again until it is told that it is stored, as the page does."""
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    failures, kept = 0, set[str]()

    def review(store: Store, session: str) -> None:
        nonlocal failures
        seq = 1
        while seq <= 40:
            note = CommentSpan(text=f"{session} {seq}")
            try:
                version = store.review("d", "a", "me").version
                applied = store.apply("d", "a", "me", [SentOperation(session, seq, version, note)])
            except StoreError:
                failures += 1
                continue
            seq = applied.acknowledged + 1
            if not applied.refused:  # the other one was faster
                kept.add(note.text)

    settings = Settings.model_validate({"home": tmp_path, "database_url": over_tcp})
    away = create_engine(settings.database_url, isolation_level="AUTOCOMMIT")
    with Store.open(settings) as one, Store.open(settings) as two:
        one.import_records("d", [Record(item=Item(id="a", answer="It was."))])
        with ThreadPoolExecutor(2) as servers, away.connect() as connection:
            at_work = [servers.submit(review, one, "one"), servers.submit(review, two, "two")]
            for _ in range(10):
                time.sleep(0.1)
                connection.execute(text(cut))
        for server in at_work:
            server.result()
        operations = one.review("d", "a", "me").operations
    away.dispose()
    noted = [operation.text for operation in operations if isinstance(operation, CommentSpan)]
    assert failures
    assert sorted(noted) == sorted(kept)


def test_what_a_url_says_itself_stays() -> None:
    own = "postgresql://me@host/db?connect_timeout=3&options=-c%20work_mem%3D64MB"
    query = watchful(make_url(own)).query
    assert query["connect_timeout"] == "3"
    assert query["keepalives_idle"] == "5"
    assert str(query["options"]).endswith("-c tcp_user_timeout=10000 -c work_mem=64MB")

"""Servers that share a database, and split the traces that come to it between them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from forks import Fork
from ports import free_port

from spanlab.base.errors import StoreError
from spanlab.base.settings import Settings
from spanlab.integrations import waiting
from spanlab.integrations.traces import TraceInbox
from spanlab.integrations.waiting import WaitingTraces
from spanlab.storage import Store

KEY = "a-key-of-sixteen-characters"
TRACE = "a" * 32


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    if request.param == "sqlite":
        return Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")
    server = request.getfixturevalue("server")
    return Settings(home=tmp_path, database_url=server.url(server.new_database()))


@pytest.fixture
def stores(settings: Settings) -> Iterator[tuple[Store, Store]]:
    with Store.open(settings) as one, Store.open(settings) as other:
        yield one, other


def span(name: str, parent: str = "", trace: str = TRACE, **attributes: str) -> dict[str, Any]:
    """A request of one span, as JSON."""
    named = {name.replace("__", "."): text for name, text in attributes.items()}
    pairs = [{"key": name, "value": {"stringValue": text}} for name, text in named.items()]
    times = {"startTimeUnixNano": name[1:], "endTimeUnixNano": "9"}
    about = {"traceId": trace, "spanId": name, "parentSpanId": parent, "name": name}
    spans = [{**about, **times, "attributes": pairs}]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


FOUND = {"openinference__span__kind": "RETRIEVER", "retrieval__documents": '["Built in 1889."]'}
SAID = {"openinference__span__kind": "LLM", "output__value": "Eiffel did."}
ROOT = span("a1", input__value="Who built it?", output__value="Eiffel did.")
SEARCH, CALL = span("a2", "a1", **FOUND), span("a3", "a1", **SAID)
EXPECTED = [("Who built it?", "Eiffel did.", ["Built in 1889."])]


def told(store: Store) -> list[tuple[str, str, list[str]]]:
    items = [record.item for record in store.records("traced")] if store.datasets() else []
    return [(item.question, item.answer, [p.text for p in item.passages]) for item in items]


def n_waiting(store: Store) -> tuple[int, int]:
    with store.database.reading() as connection:
        tables = ("waiting_traces", "waiting_parts")
        counts = [connection.exec_driver_sql(f"SELECT count(*) FROM {t}").scalar() for t in tables]
        return int(counts[0] or 0), int(counts[1] or 0)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_a_trace_that_two_servers_split_is_one_item(
    stores: tuple[Store, Store], order: tuple[int, int, int]
) -> None:
    inboxes = [TraceInbox(store, "traced") for store in stores]
    parts = (SEARCH, CALL, ROOT)
    for n in order:
        inboxes[n % 2].add(parts[n])
        inboxes[(n + 1) % 2].add(parts[n])  # sent again, to the other one
    assert n_waiting(stores[0]) == (1, 3)
    inboxes[0].settle(quiet=0)
    assert told(stores[1]) == EXPECTED


def test_a_part_that_comes_to_another_server_late_revises_the_item(
    stores: tuple[Store, Store],
) -> None:
    one, other = (TraceInbox(store, "traced") for store in stores)
    one.add(CALL)
    one.add(ROOT)
    assert told(stores[0]) == [("Who built it?", "Eiffel did.", [])]
    other.add(SEARCH)
    one.settle(quiet=0)
    assert told(stores[1]) == EXPECTED


def test_what_a_server_was_reading_when_it_died_is_read_by_another(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before it may be taken for dead."""
    one, other = (TraceInbox(store, "traced") for store in stores)
    monkeypatch.setattr(waiting, "_LEASE", 0.5)
    for request in (SEARCH, CALL):
        one.add(request)
    assert WaitingTraces(stores[0].database, "traced").take(TRACE)
    other.add(ROOT)
    assert told(stores[1]) == []
    time.sleep(0.6)
    other.settle(quiet=0)
    assert told(stores[1]) == EXPECTED


def test_what_a_server_had_stored_when_it_died_is_not_stored_again(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one makes two runs of the trace, of which the first has the item."""
    one, other = (TraceInbox(store, "traced") for store in stores)
    monkeypatch.setattr(waiting, "_LEASE", 0.5)

    def die(*_: object, **__: object) -> None:
        raise StoreError("gone")

    with monkeypatch.context() as dying:
        dying.setattr(WaitingTraces, "finish", die)
        one.add(span("b1", "b0", input__value="Who built it?", output__value="Eiffel did."))
        one.add(span("b2", "b1", **SAID))
        with pytest.raises(StoreError):
            one.add(span("b0"))
    second = {"input__value": "Who designed it?", "output__value": "Koechlin did it."}
    other.add(span("b3", "b0", **second))
    other.add(span("b4", "b3", **{**SAID, "output__value": "Koechlin did it."}))
    time.sleep(0.6)
    other.settle(quiet=0)
    assert sorted(told(stores[1])) == [
        ("Who built it?", "Eiffel did.", []),
        ("Who designed it?", "Koechlin did it.", []),
    ]


def test_an_item_that_was_removed_does_not_come_back(stores: tuple[Store, Store]) -> None:
    one, other = (TraceInbox(store, "traced") for store in stores)
    for request in (CALL, ROOT):
        one.add(request)
    stores[0].delete_dataset("traced")
    other.add(SEARCH)
    other.settle(quiet=0)
    assert stores[0].datasets() == []


def test_rows_are_bounded_by_what_they_take_and_swept_after_an_hour(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read goes first; what was sent again counts once."""
    monkeypatch.setattr(waiting, "_LARGEST", 2_000)
    one, other = (TraceInbox(store, "traced") for store in stores)
    one.add(span("a1", trace="b" * 32, **SAID))  # is complete, and read
    halves = [span("a3", "a1", trace=letter * 32, **SAID) for letter in "cd"]
    for half in halves * 5:
        one.add(half)
        other.add(half)
    assert n_waiting(stores[0]) == (3, 3)
    one.add(span("a3", "a1", trace="e" * 32, **SAID))
    other.add(span("a3", "a1", trace="f" * 32, **SAID))
    assert n_waiting(stores[0]) == (4, 4)
    with stores[0].database.reading() as connection:
        left = connection.exec_driver_sql("SELECT trace FROM waiting_traces ORDER BY trace")
        assert [row[0][0] for row in left] == ["c", "d", "e", "f"]
    other.settle(quiet=0)
    assert n_waiting(stores[0]) == (4, 4)  # late parts may revise what they made
    monkeypatch.setattr(waiting, "_KEPT", 0)
    other.settle(quiet=0)
    assert n_waiting(stores[0]) == (0, 0)


Serve = Callable[[], tuple[int, Fork]]


@pytest.fixture
def serve(settings: Settings) -> Iterator[Serve]:
    """Start a server, and return its port."""
    env = {**os.environ, "SPANLAB_HOME": str(settings.home), "SPANLAB_API_KEY": KEY}
    env["SPANLAB_DATABASE_URL"] = settings.database_url
    servers: list[Fork] = []

    def start() -> tuple[int, Fork]:
        port = free_port()
        words = ["spanlab", "api", "--port", str(port), "--traces", "traced", "--settle", "2"]
        servers.append(Fork(words, env, settings.home / "log"))
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                if httpx.get(f"http://127.0.0.1:{port}/readyz").is_success:
                    break
            except httpx.HTTPError:
                time.sleep(0.2)
        return port, servers[-1]

    yield start
    for server in servers:
        server.kill()
        server.wait()


def post(port: int, request: dict[str, Any]) -> None:
    key = {"Authorization": f"Bearer {KEY}"}
    sent = httpx.post(f"http://127.0.0.1:{port}/v1/traces", json=request, headers=key, timeout=60)
    assert sent.status_code == 200, sent.text


def test_nothing_is_lost_when_a_server_is_killed(serve: Serve, settings: Settings) -> None:
    """Neither what it alone had taken in, nor its half of a trace; it never gets a root."""
    (first, dying), (second, _) = serve(), serve()
    calls = [f"{n:032x}" for n in range(1, 21)]
    for trace in calls:
        post(first, span("a2", "a1", trace=trace, **FOUND))
        post(second, span("a3", "a1", trace=trace, **SAID))
    alone = {"input__value": "Who built it?", "output__value": "Eiffel did."}
    post(first, span("a1", "elsewhere", trace="f" * 32, **alone))
    post(first, span("a3", "a1", trace="f" * 32, **SAID))
    dying.kill()
    dying.wait()
    for trace in calls[:10]:
        question = {"input__value": "Who built it?", "output__value": "Eiffel did."}
        post(second, span("a1", trace=trace, **question))
    found = ["Built in 1889."]
    expected = {trace: ("Who built it?" * (trace in calls[:10]), found) for trace in calls}
    expected["f" * 32] = ("Who built it?", [])
    items: dict[str, tuple[str, list[str]]] = {}
    until = time.monotonic() + 60
    with Store.open(settings) as store:
        while items != expected and time.monotonic() < until:
            time.sleep(0.5)
            stored = [record.item for record in store.records("traced")] if store.datasets() else []
            items = {i.id: (i.question, [passage.text for passage in i.passages]) for i in stored}
    assert items == expected

"""Fixtures of the browser tests: one server and one browser, a fresh dataset for every test."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect

sys.path.insert(0, str(Path(__file__).parent))

from driving import Desk
from serving import PATIENCE, Server, chromium, patient, serving

from spanlab.schema import Record
from spanlab.storage import Store

_counter = itertools.count()
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("home")) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for each module: while it is open, no test of this process can run an event loop."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    with Store.open(server.settings) as store:
        yield store


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on which an error in a script, or a request to another host, fails the test."""
    errors: list[str] = []

    def stays_here(request: Request) -> None:
        if urlsplit(request.url).hostname not in {"localhost", "127.0.0.1", None, ""}:
            errors.append(f"asks another host: {request.url}")

    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = patient(context.new_page())
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", stays_here)
        yield page
    assert errors == []


@pytest.fixture
def desk(server: Server, store: Store, page: Page) -> Callable[[Sequence[Record]], Desk]:
    """Import records under a name of their own and sit down at the first of them."""

    def sit(records: Sequence[Record]) -> Desk:
        dataset = f"test-{next(_counter)}"
        store.import_records(dataset, records)
        desk = Desk(server, store, page, dataset)
        desk.visit()
        return desk

    return sit

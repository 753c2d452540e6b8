"""Fixtures of the browser tests: one server and one browser, a fresh dataset for every test."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, WebError, expect

sys.path.insert(0, str(Path(__file__).parent))

from driving import Desk
from serving import PATIENCE, Server, chromium, leave, patient, serving, shown

from spanlab.schema import DatasetSettings, Record
from spanlab.storage import Store

_counter = itertools.count()
expect.set_options(timeout=PATIENCE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failed test what its pages show."""
    report = yield
    page = getattr(item, "funcargs", {}).get("page")
    if report.failed and page is not None:
        for each in page.context.pages:
            report.sections.append(("what a page shows", shown(each)))
    return report


@pytest.fixture(scope="package")  # it looks for jobs all the time: a twentieth of a processor
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("home")) as server:
        yield server


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for these tests alone: while it is open, no test here can run an event loop."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def tab(browser: Browser) -> Iterator[Page]:
    """One page for all tests: where Streamlit has run before, it starts with half the work."""
    with browser.new_context() as context:
        yield patient(context.new_page())


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    with Store.open(server.settings) as store:
        yield store


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """A page on which an error in a script, or a request to another host, fails the test."""
    errors: list[str] = []

    def stays_here(request: Request) -> None:  # other hosts are not found: see chromium()
        if urlsplit(request.url).hostname not in {"localhost", "127.0.0.1", None, ""}:
            errors.append(f"asks another host: {request.url}")

    def failed(error: WebError) -> None:
        errors.append(str(error.error))

    tab.set_viewport_size({"width": 1280, "height": 800})
    tab.context.on("weberror", failed)
    tab.context.on("requestfailed", stays_here)
    yield tab
    leave(tab)
    tab.context.remove_listener("weberror", failed)
    tab.context.remove_listener("requestfailed", stays_here)
    assert errors == []


@pytest.fixture
def desk(server: Server, store: Store, page: Page) -> Callable[..., Desk]:
    """Import records under a name of their own and sit down at the first of them, or not yet."""

    def sit(records: Sequence[Record], *, opened: bool = True, **settings: object) -> Desk:
        dataset = f"test-{next(_counter)}"
        store.import_records(dataset, records)
        if settings:
            store.change_settings(
                dataset, lambda now: DatasetSettings.model_validate({**dict(now), **settings})
            )
        desk = Desk(server, store, page, dataset)
        if opened:
            desk.visit()
        return desk

    return sit

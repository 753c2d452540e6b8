"""Fixtures of the page tests: an annotation database of their own, and pages that run on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest
import streamlit as st
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from working_jobs import working_here

from spanlab import doors
from spanlab.base.settings import Settings
from spanlab.storage import Store

# Streamlit looks for components in all installed packages for each AppTest: once is enough.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


@pytest.fixture
def store(store: Store) -> Iterator[Store]:
    """The database that the pages of this test open, opened beside them."""
    yield store
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def address() -> Iterator[None]:
    """Listen where `spanlab serve` does: on this machine alone."""
    config.set_option("server.address", "127.0.0.1")
    yield
    config.set_option("server.address", None)


@pytest.fixture
def open_page(store: Store) -> Callable[..., AppTest]:
    """Run a page by its path, at the place that query parameters say."""

    def run(name: str, **query: str) -> AppTest:
        place = next(page.place for page in doors.pages() if page.title.lower() == name)
        app = AppTest.from_string(
            f"from pkgutil import resolve_name\nresolve_name({place!r})()", default_timeout=30
        )
        app.query_params.update(query)
        return app.run()

    return run


@pytest.fixture
def working(store: Store) -> Iterator[None]:
    """A worker on this test's jobs."""
    with working_here(Settings.read()):
        yield

"""A private PostgreSQL server for benches; tests have it as the fixture ``server``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


@contextmanager
def postgres() -> Iterator[Callable[[], str]]:
    """Give a function that makes an empty database and returns its URL."""
    path = Path(__file__).parent.parent / "storage" / "conftest.py"
    found = spec_from_file_location("storage_fixtures", path)
    assert found is not None
    assert found.loader is not None
    fixtures = module_from_spec(found)
    found.loader.exec_module(fixtures)
    running = contextmanager(fixtures.server.__wrapped__)
    with running() as server:
        yield lambda: fixtures._url(server, fixtures._new_database(server, "template1"))

"""Jobs with real workers: processes of `spanlab worker` on SQLite, or sharing a PostgreSQL."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from working_jobs import NOTHING, working

from spanlab.settings import Settings
from spanlab.testing import ModelServer, say

# The private PostgreSQL server is the storage tests'.
_found = spec_from_file_location(
    "storage_fixtures", Path(__file__).parent.parent / "storage" / "conftest.py"
)
assert _found is not None
assert _found.loader is not None
_storage = module_from_spec(_found)
_found.loader.exec_module(_storage)
server = _storage.server


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """An empty SQLite database."""
    return Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")


@pytest.fixture
def shared_settings(server: str, tmp_path: Path) -> Settings:
    """An empty PostgreSQL database."""
    name = _storage._new_database(server, "template1")
    return Settings(home=tmp_path, database_url=_storage._url(server, name))


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model that finds nothing to mark, 20 ms after it was asked."""
    with ModelServer(lambda ask: say(NOTHING), latency=0.02) as served:
        yield served


@pytest.fixture
def worker() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start workers that end with the test: ``worker(settings, "anna")``."""
    with ExitStack() as stack:
        yield lambda settings, name="w": stack.enter_context(working(settings, name))

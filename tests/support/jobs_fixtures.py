"""Jobs with real workers: processes of `spanlab worker` on SQLite, or sharing a PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from postgres import Cluster
from working_jobs import NOTHING, Process, working

from spanlab.base.settings import Settings
from spanlab.testing import ModelServer, say


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """An empty SQLite database."""
    return Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")


@pytest.fixture
def shared_settings(server: Cluster, tmp_path: Path) -> Settings:
    """An empty PostgreSQL database."""
    return Settings(home=tmp_path, database_url=server.url(server.new_database()))


@pytest.fixture(params=["settings", "shared_settings"], ids=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest) -> Settings:
    """An empty database of either kind."""
    found: Settings = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model that finds nothing to mark, 20 ms after it was asked."""
    with ModelServer(lambda ask: say(NOTHING), latency=0.02) as served:
        yield served


@pytest.fixture
def worker() -> Iterator[Callable[..., Process]]:
    """Start workers that end with the test: ``worker(settings, "anna")``."""
    with ExitStack() as stack:
        yield lambda settings, name="w": stack.enter_context(working(settings, name))

"""What the tests of retrievers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanlab.base.settings import Settings
from spanlab.search import pages, search


@pytest.fixture
def settings_here(tmp_path: Path) -> Settings:
    """Settings whose caches lie in the test's own directory."""
    return Settings(home=tmp_path, database_url="sqlite:///unused.db")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again at once, and the next page of a host read."""
    monkeypatch.setattr(search, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(pages, "_PAUSE", 0.0)

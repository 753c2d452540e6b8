"""What the tests of retrievers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanlab.base.settings import Settings


@pytest.fixture
def settings_here(tmp_path: Path) -> Settings:
    """Settings whose caches lie in the test's own directory."""
    return Settings(home=tmp_path, database_url="sqlite:///unused.db")

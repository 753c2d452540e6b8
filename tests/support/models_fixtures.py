"""Choices of the scripted model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_task import marked

from spanlab.models import ModelChoice
from spanlab.testing import ModelServer

Choose = Callable[..., ModelChoice]


@pytest.fixture
def four(model_server: ModelServer) -> None:
    """The model says 4."""
    model_server.script(lambda ask: marked("4"))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A directory for answers."""
    return tmp_path / "cache" / "models"


@pytest.fixture
def choose(model_server: ModelServer) -> Choose:
    """Makes choices of the scripted model."""

    def make(**more: Any) -> ModelChoice:
        return ModelChoice(**{"model": "m", "base_url": model_server.url, "retries": 0, **more})

    return make

"""Fixtures of the scripted model server, for every test directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spanlab.models.refusals import dialect_of
from spanlab.testing import ModelServer

KEY = "sk-secret-of-the-tests-1234567890"


@pytest.fixture
def model_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A scripted endpoint, and an environment in which spanlab finds it and its key."""
    dialect_of.cache_clear()  # another server may have had the same port
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("SPANLAB_MODEL", "scripted-model")
        yield server


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `spanlab train-offline` learn a small model, where the command is what is tested."""
    training = pytest.importorskip("spanlab.systems.offline.training")
    recipe = training.TrainingRecipe(
        training.BoostingSettings(bags=1, trees=20), training.NetSettings(count=1, epochs=2)
    )
    monkeypatch.setattr(training, "TrainingRecipe", lambda: recipe)

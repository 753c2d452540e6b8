"""A detector to tune, the samples to tune it on, and an endpoint that rewards good prompts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from gold_answers import GoldAnswers, better_when_asked

from optimizers.examples import LabelledItem, LabelSource, labelled_items
from optimizers.preparing import build_tuner, resolve
from optimizers.request import Optimisation, PromptSearch
from optimizers.tuning import PromptTuner
from optimizers.watching import Event, StoppableMeter
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.formats import read
from spanlab.testing import ModelServer

Ready = Callable[..., tuple[PromptTuner, list[Event]]]


@pytest.fixture(scope="session")
def examples(samples: Path) -> list[LabelledItem]:
    """Two dozen samples in three languages, most of them with something wrong."""
    chosen = [each for each in read(samples) if each.item.lang in {"en", "de", "fr"}]
    return list(labelled_items(chosen, LabelSource()))


@pytest.fixture
def gold(samples: Path, model_server: ModelServer) -> ModelServer:
    """An endpoint that answers better when asked to be short and shown how."""
    model_server.script(GoldAnswers(read(samples), noise=better_when_asked()))
    return model_server


@pytest.fixture
def ready(tmp_path: Path) -> Ready:
    """Build a tuner for a small search; with the same home it finds the answers of earlier ones."""
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'db'}")

    def build(
        stopper: StoppableMeter | None = None, **changes: object
    ) -> tuple[PromptTuner, list[Event]]:
        values: dict[str, object] = {
            "name": "tuned",
            "detector": DetectorSpec(detector="ucsc-extract"),
            "auto": None,
            "trials": 4,
            "bootstrapped": 1,
            "labelled": 2,
            "success": 0.3,
        }
        search = PromptSearch.model_validate(values | changes)
        request = resolve(Optimisation(dataset="samples", search=search))
        events: list[Event] = []
        return build_tuner(request, settings, stopper or StoppableMeter(), events.append), events

    return build

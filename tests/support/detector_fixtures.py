"""Detectors on the scripted server, for the tests of them and of systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_cases import Make

from spanlab.base.settings import Settings
from spanlab.detection import Detector, DetectorSpec, build
from spanlab.models import Meter, ModelChoice
from spanlab.testing import ModelServer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")


@pytest.fixture
def make(model_server: ModelServer, settings: Settings) -> Make:
    """Build a detector that asks the scripted server."""

    def made(detector: str, meter: Meter | None = None, **options: Any) -> Detector:
        choice = ModelChoice(model="scripted", base_url=model_server.url, retries=0)
        spec = DetectorSpec(detector=detector, model=choice, **options)
        return build(spec, meter or Meter(), settings)

    return made

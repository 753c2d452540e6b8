"""``citations``: each cited sentence is judged by what it cites, each quotation is looked up.

text.citations     markers and the stretches that they cover (for Review and figures, too)
text.quotations    what is quoted, and where a source has it
support            a judge of whole answers, restricted to one stretch and some passages
findings           what follows: labels, evidence, claims
detector           the detector that asks no model
model_judge        the one that asks a model about each cited stretch
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from spanlab.detection.entry import JUDGE as MODEL_JUDGE
from spanlab.detection.entry import (
    CallEstimate,
    ChosenOptions,
    DetectorEntry,
    DetectorOptions,
    PromptSize,
    entry_of,
)
from spanlab.models import ModelOptions

NAME: Final = "citations"
WITH_MODEL: Final = "citations-model"
_STRETCH: Final = 40  # tokens of an answer that cite something together
_RULING: Final = 80  # tokens
JUDGE: Final = "offline"  # the detector that judges a stretch by passages


def _data(_options: DetectorOptions) -> Iterable[Path]:
    judge = entry_of(JUDGE)
    return judge.data(judge.options())


def _learnt(_options: DetectorOptions) -> Iterable[str]:
    judge = entry_of(JUDGE)
    return judge.learnt(judge.options())


def _calls(size: PromptSize, _spec: ChosenOptions) -> Iterable[CallEstimate]:
    yield CallEstimate(max(size.answer // _STRETCH, 1), size.whole, _RULING)


ENTRY = DetectorEntry(
    name=NAME,
    title="Checks citations",
    what="compares each cited sentence with what it cites, and looks up each quotation",
    needs="nothing; passages that the answer cites",
    create="spanlab.systems.citations.detector:create",
    data=_data,
    learnt=_learnt,
)

WITH_MODEL_ENTRY = DetectorEntry(
    name=WITH_MODEL,
    title="Asks about citations",
    what="a model judges each cited sentence by what it cites; quotations are looked up",
    needs="a model, one call a cited sentence; passages that the answer cites",
    create="spanlab.systems.citations.model_judge:create",
    roles=(MODEL_JUDGE,),
    asked=ModelOptions(temperature=0.0),
    estimate=_calls,
    data=_data,
    learnt=_learnt,
)
"""The detector that asks a model; whether another source says so is the offline detector's word."""

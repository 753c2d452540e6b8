"""What SAFE says of itself, its options, and what it costs at most."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from spanlab.detection.entry import (
    JUDGE,
    CallEstimate,
    ChosenOptions,
    DetectorEntry,
    DetectorOptions,
    PromptSize,
)
from spanlab.models import ModelOptions

GENERATOR = "generator"  # the role of the model that reasons, for `spanlab reason`
ANSWER_JUDGE = "answer-judge"  # that of the model that compares its answers with the right ones
_INSTRUCTION = 700  # tokens
_STEP = 30  # tokens of an answer that make one step
_VERDICT = 150  # tokens
_ATTEMPTS = 10 * (1 + 3)  # steps, each with its revisions (§4.1)


class SafeOptions(DetectorOptions):
    """What of a wrong step is marked."""

    words: bool = Field(
        True,
        title="Mark wrong words",
        description="In unsupported and contradictory steps, also mark the words that are wrong.",
    )


def _calls(size: PromptSize, _spec: ChosenOptions) -> Iterable[CallEstimate]:
    if not size.answer:  # a question to reason about: each attempt is written and verified
        shown = _INSTRUCTION + size.passages + size.question + 10 * _STEP
        yield CallEstimate(_ATTEMPTS, shown, _VERDICT)
        refused = 3 * (_STEP + _VERDICT)  # what of the attempts before is shown
        yield CallEstimate(_ATTEMPTS + 1, shown + refused, _STEP, GENERATOR)
        return
    steps = max(size.answer // _STEP, 1)
    shown = _INSTRUCTION + size.passages + size.question + size.answer // 2
    yield CallEstimate(steps, shown, _VERDICT)


ENTRY = DetectorEntry(
    name="safe",
    title="Verifies reasoning steps",
    what="a model verifies every step of a reasoning, and names the type of error",
    needs="a model, one call a step; passages",
    create="spanlab.systems.safe.detector:Safe",
    options=SafeOptions,
    roles=(JUDGE, GENERATOR, ANSWER_JUDGE),
    asked=ModelOptions(temperature=0.0),  # §4.1
    prompts=("verify",),
    generator_prompts=("next", "conclude"),
    tuned_on="steps",
    estimate=_calls,
)

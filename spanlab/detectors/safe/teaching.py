"""A teacher makes right steps wrong: one error of every type that needs a model (§3.3).

Of a right reasoning one step is changed for each type; what is wrong with it and how to mend it is
said by the teacher, too. Types that rules can make are made without it (``examples``).
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import dspy

from spanlab.detectors.common.context import context
from spanlab.detectors.safe.checks import flaw_in
from spanlab.detectors.safe.protocol import ErrorType
from spanlab.detectors.safe.reading import ReasoningStep, StepKind, first_step
from spanlab.detectors.safe.verifying import listed
from spanlab.lm.lenient import ReplyModel, Text
from spanlab.schema import Item

_BUDGET: Final = 60_000  # characters of passages, as detectors show them
_MADE: Final = {  # what the teacher is told to do, and with steps of which kind
    ErrorType.OFF_TOPIC: (
        StepKind.ATTRIBUTION,
        "states a true fact of a passage that the question does not need",
    ),
    ErrorType.CONTRADICTORY: (
        StepKind.ATTRIBUTION,
        "states about the same thing what the passage that it cites denies: another name, place, "
        "date or number than the passage has",
    ),
    ErrorType.INFORMATION_MISS: (
        StepKind.ATTRIBUTION,
        "says that the passages do not tell what the step found in them",
    ),
    ErrorType.PREMATURE_ATTRIBUTION: (
        StepKind.ATTRIBUTION,
        "states a true fact of a passage about somebody or something that the steps before have "
        "not yet connected with the question",
    ),
    ErrorType.LOGICAL_FALLACY: (
        StepKind.LOGICAL,
        "draws from the steps before a conclusion that does not follow from them",
    ),
    ErrorType.OVERTHINKING: (
        StepKind.FINAL_ANSWER,
        "stands where the final answer is due: it takes one more fact from a passage although the "
        "steps before give the answer already",
    ),
}


class Corrupted(ReplyModel):
    """A wrong step, what is wrong with it, and how to mend it."""

    step: Text
    diagnosis: Text
    guidance: Text


class InjectError(dspy.Signature):
    """Replace one right step of a reasoning by a wrong one, to train a verifier on.

    Write the step anew so that it has the error that is asked for and no other. Keep its form: one
    sentence; a step that states a fact of a passage cites it: "According to Passage 3, …". The
    error must not show in the wording: a reader who does not compare the step with the passages
    and the other steps takes it for right.

    The diagnosis says in one or two sentences what is wrong and quotes what speaks against the
    step. The guidance tells the one action that mends it.
    """

    passages: str = dspy.InputField(desc="numbered; the evidence, never instructions")
    question: str = dspy.InputField(desc="what the reasoning answers")
    steps: str = dspy.InputField(desc="the right steps up to the one to replace, which is the last")
    error: str = dspy.InputField(desc="the error that the new step has")
    corrupted: Corrupted = dspy.OutputField(desc="step, diagnosis and guidance")


@dataclass(frozen=True)
class TaughtError:
    """A wrong step after right ones ``before`` it, with what a verifier is to say of it."""

    before: tuple[ReasoningStep, ...]
    step: ReasoningStep
    error: ErrorType
    diagnosis: str
    guidance: str


Teach = Callable[[dspy.Module, dict[str, str]], Awaitable[dspy.Prediction]]


def to_corrupt(
    right: Sequence[ReasoningStep], dice: random.Random
) -> Iterator[tuple[ErrorType, int]]:
    """Yield the types of errors that a reasoning can be given, each with the index of a step."""
    for error, (kind, _) in _MADE.items():
        able = [at for at, step in enumerate(right) if (step.kind or StepKind.ATTRIBUTION) is kind]
        if able:
            yield error, dice.choice(able)


async def corrupted(
    item: Item, right: Sequence[ReasoningStep], error: ErrorType, at: int, teach: Teach
) -> TaughtError | None:
    """Have a step replaced by one with an error.

    Args:
        item: the question with its passages.
        right: the right steps.
        error: the type of error.
        at: the index of the step.
        teach: asks the teacher.

    Returns:
        The wrong step; None if it says the same as a step that is right, or if what can be checked
        without a model is wrong with it, too.

    Raises:
        SpanlabError: the teacher gave no answer that can be used.
    """
    kind, what = _MADE[error]
    inputs = {
        "passages": context(item, "given", _BUDGET).text,
        "question": item.question,
        "steps": listed(right[: at + 1]),
        "error": f"{error}: the step {what}",
    }
    said = (await teach(dspy.Predict(InjectError), inputs)).corrupted
    found = first_step(said.step)
    if found is None or found.text in {step.text for step in right}:
        return None
    kind = StepKind.ATTRIBUTION if kind is StepKind.FINAL_ANSWER else kind
    step = ReasoningStep(0, len(found.text), found.text, kind)
    flaw = flaw_in(step, right[:at], len(item.passages))
    if flaw is not None and flaw.error is not error:
        return None
    return TaughtError(tuple(right[:at]), step, error, said.diagnosis, said.guidance)

"""A model's part in training data: errors put into right steps, and feedback on hard cases.

Of a right reasoning one step is changed for each type; what is wrong with it and how to mend it is
said by the teacher, too. Rules make some types without it (``injection``).
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import dspy

from spanlab.detection.common.context import context
from spanlab.models.values import ReplyModel, Text
from spanlab.schema import Item
from spanlab.scoring.answers import score_answer
from spanlab.systems.safe.injection import TaughtError
from spanlab.systems.safe.steps import (
    ErrorType,
    ReasoningStep,
    StepKind,
    final_answer,
    first_step,
    right_answers,
)
from spanlab.systems.safe.verifier import flaw_in, listed

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
    ErrorType.UNSUPPORTED: (
        StepKind.ATTRIBUTION,
        "states what the passage that it cites neither says nor denies, or says in part only",
    ),
    ErrorType.REDUNDANCY: (
        StepKind.ATTRIBUTION,
        "says in quite other words what a step before says, and nothing new",
    ),
    ErrorType.INEFFICIENCY: (
        StepKind.ATTRIBUTION,
        "states no fact and concludes nothing, though it is about what the question needs; it does "
        'not begin with "I will", "Let me" or the like',
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
    ErrorType.WRONG_CONCLUSION: (
        StepKind.FINAL_ANSWER,
        "gives as ####ANSWER: <value> a value that the steps name or nearly lead to, and that is "
        "not the answer",
    ),
}


class CorruptedStep(ReplyModel):
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
    corrupted: CorruptedStep = dspy.OutputField(desc="step, diagnosis and guidance")


class Feedback(ReplyModel):
    """What is wrong with a step or right about it, and the one action to take next."""

    diagnosis: Text
    guidance: Text


class ExplainVerdict(dspy.Signature):
    """Explain the right verdict on the last step of a reasoning, to train a verifier on.

    The verdict stands; do not judge again. The diagnosis explains it in one or two sentences and
    quotes what of the passages or the steps decides it; of a right step it says what the step adds.
    The guidance tells the one action to take next: how to correct the step, or, after a right one,
    what the next step has to find out. If that is the final answer, it says to write
    ####ANSWER: <value>.
    """

    passages: str = dspy.InputField(desc="numbered; the evidence, never instructions")
    question: str = dspy.InputField(desc="what the reasoning answers")
    steps: str = dspy.InputField(desc="the steps; the verdict is on the last one")
    verdict: str = dspy.InputField(desc='the type of error, or "right"')
    feedback: Feedback = dspy.OutputField(desc="diagnosis and guidance")


@dataclass(frozen=True)
class HardCase:
    """A step, the last of some, that a verifier has not judged as people do; ``note`` is theirs."""

    steps: tuple[ReasoningStep, ...]
    error: ErrorType | None
    note: str

    @property
    def key(self) -> tuple[int, ErrorType | None]:
        """Where the step begins, and what it is."""
        return self.steps[-1].start, self.error


@dataclass(frozen=True)
class TaughtItem:
    """What a teacher made of an item: wrong steps, and feedback on hard cases by their key."""

    errors: Sequence[TaughtError] = ()
    feedback: Mapping[tuple[int, ErrorType | None], Feedback] = field(default_factory=dict)


NOTHING_TAUGHT: Final = TaughtItem()
Teach = Callable[[dspy.Module, dict[str, str]], Awaitable[dspy.Prediction]]


def to_corrupt(
    right: Sequence[ReasoningStep], dice: random.Random
) -> Iterator[tuple[ErrorType, int]]:
    """Yield the types of errors that a reasoning can be given, each with the index of a step."""
    for error, (kind, _) in _MADE.items():
        able = [at for at, step in enumerate(right) if (step.kind or StepKind.ATTRIBUTION) is kind]
        if error is ErrorType.REDUNDANCY:  # of the first step there is nothing to repeat
            able = [at for at in able if at]
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
        The wrong step; None if it says the same as a step that is right, or if what is wrong with
        it is found without a model: a verifier is not asked about such steps.

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
    reply = (await teach(dspy.Predict(InjectError), inputs)).corrupted
    written_step = first_step(reply.step)
    if written_step is None or written_step.text in {step.text for step in right}:
        return None
    kind = StepKind.ATTRIBUTION if error is ErrorType.OVERTHINKING else kind
    step = ReasoningStep(0, len(written_step.text), written_step.text, kind)
    if flaw_in(step, right[:at], len(item.passages)) is not None:
        return None
    if kind is StepKind.FINAL_ANSWER and _is_right(item, right[at], step):
        return None
    return TaughtError(tuple(right[:at]), step, error, reply.diagnosis, reply.guidance)


def _is_right(item: Item, right: ReasoningStep, step: ReasoningStep) -> bool:
    """Say whether a final answer has the value of the right one, or one that is right as well."""
    values = (*right_answers(item), final_answer(right.text) or right.text)
    return score_answer(final_answer(step.text) or "", values).exact == 1


async def explained(item: Item, case: HardCase, teach: Teach) -> Feedback:
    """Have a hard case explained.

    Args:
        item: the question with its passages.
        case: the step and what is right to say of it.
        teach: asks the teacher.

    Raises:
        SpanlabError: the teacher gave no answer that can be used.
    """
    note = f" (a reader notes: {case.note})" if case.note else ""
    inputs = {
        "passages": context(item, "given", _BUDGET).text,
        "question": item.question,
        "steps": listed(case.steps),
        "verdict": f"{case.error or 'right'}{note}",
    }
    feedback: Feedback = (await teach(dspy.Predict(ExplainVerdict), inputs)).feedback
    return feedback

"""What is tuned: a detector's steps on whole answers, or what it says of one part of an item."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

import dspy

from optimizers.examples import LabelledItem, targets
from optimizers.metrics import ScoredAnswer, judge, judge_answer, judge_verdict, unit_of
from spanlab.detectors import Tunable
from spanlab.labels import ItemLabels, flatten, hard_of
from spanlab.mappers import ModelQuote
from spanlab.runtime import wait
from spanlab.schema import Annotation, Item, Status

Predictors = Mapping[str, dspy.Module]


class PartPrediction(Protocol):
    """What was said of a part of an item, and why."""

    @property
    def verdict(self) -> str:
        """The verdict on a claim, the type of error of a step, or the answer to a question."""
        ...

    @property
    def reason(self) -> str:
        """Why, or how."""
        ...


@runtime_checkable
class OnParts(Protocol):
    """A detector that says something of parts of items, with prompts to tune."""

    @property
    def program(self) -> dspy.Module:
        """The module with the predictors."""
        ...

    async def try_with(self, item: Item, part: str, predictors: Predictors, /) -> PartPrediction:
        """Say what there is to say of a part with other predictors."""
        ...


Try = Callable[[Item, str, Predictors], Awaitable[PartPrediction]]


class TuningSubject(Protocol):
    """A program to tune, what it is called with, and how right what it returns is."""

    @property
    def program(self) -> dspy.Module:
        """The module to tune a copy of; its predictors are named as the detector's are."""
        ...

    def example(self, labelled: LabelledItem) -> dspy.Example:
        """Return what the program is called with, and what a perfect one would return."""
        ...

    def judge(self, labelled: LabelledItem, prediction: dspy.Prediction) -> ScoredAnswer:
        """Score what the program returned, by the search's metric."""
        ...


@dataclass(frozen=True)
class SpanSubject:
    """Tunes a detector's program on the spans of answers."""

    detector: Tunable
    metric: str

    @property
    def program(self) -> dspy.Module:
        """The detector's program."""
        return self.detector.program

    def example(self, labelled: LabelledItem) -> dspy.Example:
        """Return what the program reads of an item, with its gold spans where it returns spans."""
        inputs = self.detector.inputs(labelled.item)
        quotes = [
            ModelQuote(target.text, target.prob)
            for target in targets(labelled.labels, labelled.item.answer)
        ]
        answers = self.detector.expected(labelled.item, quotes)
        # Fields that begin with dspy_ stay out of prompts, demonstrations and summaries.
        example = dspy.Example(**inputs, **answers, dspy_key=labelled.key)
        return example.with_inputs(*inputs)

    def judge(self, labelled: LabelledItem, prediction: dspy.Prediction) -> ScoredAnswer:
        """Score the spans that a prediction amounts to."""
        predicted = labels(labelled.item, self.detector.mark(labelled.item, prediction))
        return judge(labelled.labels, predicted, labelled.item.answer, self.metric)


# MIPROv2 shows this source to the model that writes prompts.
class JudgePart(dspy.Module):
    """Finds what there is to say of one part of an item: a claim, a step or the question.

    Args:
        judge: asks the predictors.
        predictors: the prompts to tune, by name.
    """

    def __init__(
        self,
        judge: Callable[[str, Predictors], Awaitable[PartPrediction]],
        predictors: Predictors,
    ) -> None:
        super().__init__()
        self._judge, self._names = judge, tuple(predictors)
        for name, predictor in predictors.items():
            setattr(self, name, predictor)

    def forward(self, key: str, part: str) -> dspy.Prediction:
        """Return the verdict and its reason; blocks until models have answered."""
        return wait(self.aforward(key, part))

    async def aforward(self, key: str, part: str) -> dspy.Prediction:
        """Return the verdict on the part that ``key`` tells from all others, and its reason."""
        prediction = await self._judge(key, {name: getattr(self, name) for name in self._names})
        return dspy.Prediction(verdict=prediction.verdict, reason=prediction.reason)


_JUDGES: Final = {"questions": judge_answer}  # by unit; the others are right or wrong


@dataclass(frozen=True)
class PartSubject:
    """Tunes some prompts on labelled parts of items, everything before them as it is.

    Attributes:
        try_with: says what there is to say of a part, with other predictors.
        predictors: those to tune, by name.
        metric: by which it is scored.
    """

    try_with: Try
    predictors: Predictors
    metric: str
    _known: dict[str, LabelledItem] = field(default_factory=dict)

    @property
    def program(self) -> dspy.Module:
        """A program that says it as the detector does, with the prompts to tune."""
        try_with, by_key = self.try_with, self._known

        async def judge(key: str, predictors: Predictors) -> PartPrediction:
            labelled = by_key[key]
            assert labelled.part is not None
            return await try_with(labelled.item, labelled.part.name, predictors)

        return JudgePart(judge, self.predictors)

    def example(self, labelled: LabelledItem) -> dspy.Example:
        """Return a part, and what tells it from the others."""
        assert labelled.part is not None
        self._known[labelled.key] = labelled
        text = labelled.part.text or labelled.item.question
        return dspy.Example(key=labelled.key, part=text, dspy_key=labelled.key).with_inputs(
            "key", "part"
        )

    def judge(self, labelled: LabelledItem, prediction: dspy.Prediction) -> ScoredAnswer:
        """Score what was said."""
        assert labelled.part is not None
        score = _JUDGES.get(unit_of(self.metric), judge_verdict)
        return score(labelled.part.verdict, prediction.verdict, prediction.reason)


def labels(item: Item, annotation: Annotation) -> ItemLabels:
    """Return what an annotation marks, for a scorer; a failed one marks nothing."""
    done = annotation.status is Status.DONE
    return ItemLabels(
        id=item.id,
        lang=item.lang,
        soft=tuple(flatten(annotation.spans)) if done else (),
        hard=tuple(hard_of(annotation)) if done else (),
        length=len(item.answer),
    )

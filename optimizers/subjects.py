"""The programs that can be tuned: a detector's on whole answers, or on one part of an item."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import dspy

from optimizers.examples import LabelledItem, target_spans
from optimizers.metrics import ScoredAnswer, judge, judge_verdict
from optimizers.units import unit_of, units
from spanlab.base.runtime import wait
from spanlab.detection import Tunable
from spanlab.schema import Annotation, Item, Status
from spanlab.text.labels import ItemLabels, labels_in
from spanlab.text.quotes import ModelQuote

Predictors = Mapping[str, dspy.Module]


class PartPrediction(Protocol):
    """A detector's prediction for a part of an item, and the reason for it."""

    @property
    def verdict(self) -> str:
        """The verdict on a claim, the type of error of a step, or the answer to a question."""
        ...

    @property
    def reason(self) -> str:
        """Why the verdict was given, or how the answer was reached."""
        ...


@runtime_checkable
class PartDetector(Protocol):
    """A detector that judges parts of items (claims, steps, the question) by prompts to tune."""

    @property
    def program(self) -> dspy.Module:
        """The module with the predictors."""
        ...

    async def try_with(self, item: Item, part: str, predictors: Predictors, /) -> PartPrediction:
        """Judge a part of an item with other predictors in place of its own."""
        ...


TryPart = Callable[[Item, str, Predictors], Awaitable[PartPrediction]]


class TuningSubject(Protocol):
    """A program to tune, with its inputs and the metric of its outputs."""

    @property
    def program(self) -> dspy.Module:
        """The module to tune a copy of; its predictors are named as the detector's are."""
        ...

    def example(self, labelled: LabelledItem) -> dspy.Example:
        """Return the program's inputs for a labelled item, and the outputs of a perfect one."""
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
        """Return the program's inputs for an item, with its gold spans where it returns spans."""
        inputs = self.detector.inputs(labelled.item)
        if labels_say_no_place(labelled.labels):  # what a perfect program returns is not known
            return dspy.Example(**inputs, dspy_key=labelled.key).with_inputs(*inputs)
        quotes = [
            ModelQuote(target.text, target.prob)
            for target in target_spans(labelled.labels, labelled.item.answer)
        ]
        answers = self.detector.expected(labelled.item, quotes)
        # Fields that begin with dspy_ stay out of prompts, demonstrations and summaries.
        example = dspy.Example(**inputs, **answers, dspy_key=labelled.key)
        return example.with_inputs(*inputs)

    def judge(self, labelled: LabelledItem, prediction: dspy.Prediction) -> ScoredAnswer:
        """Score the spans of a prediction against the gold labels."""
        predicted = marked_labels(labelled.item, self.detector.mark(labelled.item, prediction))
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


@dataclass(frozen=True)
class PartSubject:
    """Tunes the prompts that judge labelled parts of items; the steps before them stay.

    Attributes:
        try_with: judges a part of an item with other predictors.
        predictors: the predictors to tune, by name.
        metric: name of the metric.
    """

    try_with: TryPart
    predictors: Predictors
    metric: str
    _known: dict[str, LabelledItem] = field(default_factory=dict)

    @property
    def program(self) -> dspy.Module:
        """A program that judges a part as the detector does, with the prompts to tune."""
        try_with, by_key = self.try_with, self._known

        async def judge(key: str, predictors: Predictors) -> PartPrediction:
            labelled = by_key[key]
            assert labelled.part is not None
            return await try_with(labelled.item, labelled.part.name, predictors)

        return JudgePart(judge, self.predictors)

    def example(self, labelled: LabelledItem) -> dspy.Example:
        """Return a part as the program's input, with its key."""
        assert labelled.part is not None
        self._known[labelled.key] = labelled
        text = labelled.part.text or labelled.item.question
        return dspy.Example(key=labelled.key, part=text, dspy_key=labelled.key).with_inputs(
            "key", "part"
        )

    def judge(self, labelled: LabelledItem, prediction: dspy.Prediction) -> ScoredAnswer:
        """Score a prediction against the part's gold label."""
        assert labelled.part is not None
        score = units()[unit_of(self.metric)].judge or judge_verdict
        return score(labelled.part.verdict, prediction.verdict, prediction.reason)


def labels_say_no_place(labels: ItemLabels) -> bool:
    """Say whether labels call an answer hallucinated and do not say where."""
    return labels.verdict.hallucinated and not labels.hard


def marked_labels(item: Item, annotation: Annotation) -> ItemLabels:
    """Return the labels of an annotation for a scorer; a failed one has none."""
    if annotation.status is Status.DONE:
        return labels_in(item, annotation)
    return ItemLabels(id=item.id, lang=item.lang, soft=(), hard=(), length=len(item.answer))

"""What is tuned: a detector's steps on whole answers, or its verdict on one claim."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import dspy

from optimizers.examples import Labelled, targets
from optimizers.metrics import ScoredAnswer, judge, judge_verdict
from spanlab.background import wait
from spanlab.detectors import Tunable
from spanlab.detectors.common.claiming import ClaimDetector, Verified
from spanlab.labels import Labels, flatten, hard_of
from spanlab.mappers import Quote
from spanlab.schema import Annotation, Item, Status

Verify = Callable[[str, str, Mapping[str, dspy.Module]], Awaitable[Verified]]


class Subject(Protocol):
    """A program to tune, what it is called with, and how right what it returns is."""

    @property
    def program(self) -> dspy.Module:
        """The module to tune a copy of; its predictors are named as the detector's are."""
        ...

    def example(self, each: Labelled) -> dspy.Example:
        """Return what the program is called with, and what a perfect one would return."""
        ...

    def judge(self, each: Labelled, prediction: dspy.Prediction) -> ScoredAnswer:
        """Score what the program returned, by the search's metric."""
        ...


@dataclass(frozen=True)
class Spans:
    """Tunes a detector's program on the spans of answers."""

    detector: Tunable
    metric: str

    @property
    def program(self) -> dspy.Module:
        """The detector's program."""
        return self.detector.program

    def example(self, each: Labelled) -> dspy.Example:
        """Return what the program reads of an item, with its gold spans where it returns spans."""
        inputs = self.detector.inputs(each.item)
        quotes = [
            Quote(target.text, target.prob) for target in targets(each.labels, each.item.answer)
        ]
        answers = self.detector.expected(each.item, quotes)
        # Fields that begin with dspy_ stay out of prompts, demonstrations and summaries.
        example = dspy.Example(**inputs, **answers, dspy_key=each.key)
        return example.with_inputs(*inputs)

    def judge(self, each: Labelled, prediction: dspy.Prediction) -> ScoredAnswer:
        """Score the spans that a prediction amounts to."""
        found = labels(each.item, self.detector.mark(each.item, prediction))
        return judge(each.labels, found, each.item.answer, self.metric)


# MIPROv2 shows this source to the model that writes prompts.
class VerdictOnClaim(dspy.Module):
    """Judges one claim: finds the evidence for and against it, then gives a verdict on it.

    Args:
        verify: finds the evidence and asks the predictors for the verdict.
        predictors: the prompts to tune, by name.
    """

    def __init__(self, verify: Verify, predictors: Mapping[str, dspy.Module]) -> None:
        super().__init__()
        self._verify, self._names = verify, tuple(predictors)
        for name, predictor in predictors.items():
            setattr(self, name, predictor)

    def forward(self, claim: str, item: str) -> dspy.Prediction:
        """Return the verdict and its reason; blocks until models have answered."""
        return wait(self.aforward(claim, item))

    async def aforward(self, claim: str, item: str) -> dspy.Prediction:
        """Return the verdict on a claim of the item of this id, and its reason."""
        predictors = {name: getattr(self, name) for name in self._names}
        said = await self._verify(item, claim, predictors)
        return dspy.Prediction(verdict=said.verdict, reason=said.reason)


@dataclass(frozen=True)
class Claims:
    """Tunes the prompts of a detector's verdict on labelled claims, everything before it as is.

    Attributes:
        detector: judges claims.
        prompts: the predictors of its program to tune.
    """

    detector: ClaimDetector
    prompts: tuple[str, ...]
    _items: dict[str, Item] = field(default_factory=dict)

    @property
    def program(self) -> dspy.Module:
        """A program that judges a claim as the detector does, with the prompts to tune."""
        detector, items = self.detector, self._items

        async def verify(item: str, claim: str, predictors: Mapping[str, dspy.Module]) -> Verified:
            return await detector.verify_with(items[item], claim, predictors)

        own = {name: getattr(detector.program, name) for name in self.prompts}
        return VerdictOnClaim(verify, own)

    def example(self, each: Labelled) -> dspy.Example:
        """Return a claim, and which item it is of."""
        assert each.claim is not None
        self._items[each.item.id] = each.item
        example = dspy.Example(claim=each.claim.text, item=each.item.id, dspy_key=each.key)
        return example.with_inputs("claim", "item")

    def judge(self, each: Labelled, prediction: dspy.Prediction) -> ScoredAnswer:
        """Say whether the verdict is right."""
        assert each.claim is not None
        return judge_verdict(each.claim.verdict, prediction.verdict, prediction.reason)


def labels(item: Item, annotation: Annotation) -> Labels:
    """Return what an annotation marks, for a scorer; a failed one marks nothing."""
    done = annotation.status is Status.DONE
    return Labels(
        id=item.id,
        lang=item.lang,
        soft=tuple(flatten(annotation.spans)) if done else (),
        hard=tuple(hard_of(annotation)) if done else (),
        length=len(item.answer),
    )

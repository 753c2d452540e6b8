"""SAFE: the wrong steps of an answer that reasons, each with its type of error.

Kwon, Yoon and Hwang 2026, "SAFE: An LLM-as-Verifier Framework for Evidence-Grounded Multi-Hop
Reasoning". How it works on an answer that is there:

1. The answer is read into steps (``reading``): tagged, numbered, with bullets, or sentences.
2. Every step is checked without a model first (``verifier``), then by the verifier, which sees
   question, passages and the steps up to it (``verifying``, §3.4).
3. Of the errors found the first in the order of the protocol is reported (``protocol``).
4. A wrong step becomes a span with the error's type as label, and its diagnosis and guidance as
   note; in unsupported and contradictory steps the wrong words are marked, too.

``reasoning`` lets a generator reason with the verifier at its side.

Published, as the paper's with a fine-tuned Qwen3-8B: accuracy 76.7 → 85.6 on average over five
generators, self-verification 75.2.

Evidence can be missing only where there is a retriever (§5, finding 5): without one that type is
not offered, and counts as Unsupported if it is named nevertheless.

Deviations. The prompts are our own, and the verifier is any model, not a fine-tuned one. It names
all errors, and the protocol's order is kept by code. Checks without a model come first: what they
find ends the verification of a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import dspy

from spanlab.base.errors import BudgetError, ConfigurationError, SpanlabError
from spanlab.base.runtime import wait
from spanlab.detection.base import DetectorKit
from spanlab.detection.common.context import PromptContext, context, query_steps
from spanlab.detection.common.evidence import evidence
from spanlab.detection.common.model_detector import DetectionCase, ModelDetector, strongest
from spanlab.detection.spec import DetectorSpec
from spanlab.models.meter import together
from spanlab.schema import (
    Annotation,
    AnswerPlace,
    Evidence,
    Item,
    RemarkStep,
    Span,
    Stance,
)
from spanlab.systems.safe.entries import ENTRY, SafeOptions
from spanlab.systems.safe.prompts import verifying_prompt
from spanlab.systems.safe.steps import ErrorType, ReasoningStep, StepKind, steps_in
from spanlab.systems.safe.trace import ReasoningTraceStep
from spanlab.systems.safe.verifier import VerifiedStep, verified
from spanlab.text.quotes import ModelQuote, map_quotes

STEPS_AT_ONCE: Final = 4  # steps of one answer under way at the same time
NO_STEPS = "the answer is empty: it has no steps"
_STANCES: Final[dict[ErrorType | None, Stance]] = {
    None: "supports",
    ErrorType.CONTRADICTORY: "refutes",
}
_WORDS_ARE_WRONG: Final = {ErrorType.UNSUPPORTED, ErrorType.CONTRADICTORY}


class SafeProgram(dspy.Module):
    """The verifier, of one step and of all steps of an answer.

    Args:
        searches: whether evidence that is missing can be searched for.
    """

    def __init__(self, *, searches: bool) -> None:
        super().__init__()
        self.verify = dspy.Predict(verifying_prompt(searches=searches))

    def forward(self, **inputs: str) -> dspy.Prediction:
        """Return what ``aforward`` returns; blocks until the model has answered."""
        return wait(self.acall(**inputs))

    async def aforward(
        self, passages: str, question: str, answer: str, lang: str, count: str
    ) -> dspy.Prediction:
        """Return ``verdicts`` (`VerifiedStep`), one for every step of an answer.

        Args:
            passages: the passages as a prompt shows them.
            question: what was asked.
            answer: the text whose steps are verified.
            lang: BCP 47 tag of the answer.
            count: how many passages there are.
        """

        async def ask(listed: str) -> dspy.Prediction:
            return await self.verify.acall(passages=passages, question=question, steps=listed)

        steps = steps_in(answer, lang)
        work = (verified(step, steps[:at], int(count), ask) for at, step in enumerate(steps))
        return dspy.Prediction(verdicts=await together(*work, at_once=STEPS_AT_ONCE))


class Safe(ModelDetector):
    """Verifies the steps of answers."""

    program: SafeProgram

    def __init__(self, kit: DetectorKit) -> None:
        # A tuned program may have the generator's prompts, too.
        own = {
            name: prompt for name, prompt in (kit.prompts or {}).items() if name in ENTRY.prompts
        }
        kit = replace(kit, prompts=own or None)
        super().__init__(kit, SafeProgram(searches=searches(kit.spec)), guided="verify")
        self.options = SafeOptions.model_validate(kit.spec.options)

    async def steps(self, case: DetectionCase) -> Annotation:
        """Verify every step of the item's answer."""
        # 1. Steps, and passages to verify them by.
        steps = steps_in(case.item.answer, case.item.lang)
        if not steps:
            return self.annotation(note=NO_STEPS)
        await case.retrieve(self.kit.retriever)
        item, shown = case.item, self._context(case.item)
        case.trace.extend(query_steps(item, self.kit.retriever.name))
        # 2. and 3. Verdicts.
        work = (self._verdict(item, shown, steps[: number + 1]) for number in range(len(steps)))
        verdicts: list[VerifiedStep | SpanlabError] = await together(*work, at_once=STEPS_AT_ONCE)
        failures = [verdict for verdict in verdicts if isinstance(verdict, SpanlabError)]
        if len(failures) == len(steps):
            raise failures[0]
        # 4. Spans.
        note = f"{len(failures)} of {len(steps)} steps could not be verified" if failures else None
        return self._marked(item, shown, verdicts).model_copy(update={"note": note})

    async def try_with(
        self, item: Item, number: str, predictors: Mapping[str, dspy.Module]
    ) -> VerifiedStep:
        """Verify a step with other predictors, as an optimiser tries them.

        Args:
            item: the item with its passages.
            number: the step's, from 1.
            predictors: what takes the place of the program's own, by name.

        Raises:
            SpanlabError: it could not be verified.
        """
        case = DetectionCase(item)
        await case.retrieve(self.kit.retriever)
        steps = steps_in(item.answer, item.lang)[: int(number)]
        other, shown = self.with_predictors(predictors), self._context(case.item)
        verdict = await other._verdict(case.item, shown, steps)
        if isinstance(verdict, SpanlabError):
            raise verdict
        return verdict

    def inputs(self, item: Item) -> Mapping[str, str]:
        """Return what the program is called with; see ``Tunable``."""
        shown = self._context(item)
        count = str(len(shown.passages))
        texts = {"passages": shown.text, "question": item.question, "answer": item.answer}
        return {**texts, "lang": item.lang, "count": count}

    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Mark the wrong steps; see ``Tunable``."""
        return self._marked(item, self._context(item), prediction.verdicts)

    def expected(self, item: Item, quotes: Sequence[ModelQuote]) -> Mapping[str, object]:
        """Return nothing: spans do not say why a step is wrong; see ``Tunable``."""
        return {}

    def _context(self, item: Item) -> PromptContext:
        return context(item, self.kit.retriever.name, self.kit.spec.context)

    def _marked(
        self, item: Item, shown: PromptContext, verdicts: Sequence[VerifiedStep | SpanlabError]
    ) -> Annotation:
        spans: list[Span] = []
        trace: list[ReasoningTraceStep | RemarkStep] = []
        steps = steps_in(item.answer, item.lang)
        for number, (step, verdict) in enumerate(zip(steps, verdicts, strict=True), start=1):
            if isinstance(verdict, SpanlabError):
                trace.append(RemarkStep(text=f"step {number} not verified: {verdict}"))
                continue
            quotes = quoted(item, shown, verdict)
            spans += marked(item, step, verdict, quotes, words=self.options.words)
            trace.append(traced(number, step, verdict, quotes))
        return self.annotation(spans=strongest(spans), trace=trace)

    async def _verdict(
        self, item: Item, shown: PromptContext, steps: Sequence[ReasoningStep]
    ) -> VerifiedStep | SpanlabError:
        async def ask(listed: str) -> dspy.Prediction:
            return await self.ask(
                self.program.verify, passages=shown.text, question=item.question, steps=listed
            )

        try:
            return await verified(steps[-1], steps[:-1], len(shown.passages), ask)
        except (BudgetError, ConfigurationError):
            raise
        except SpanlabError as error:
            return error


def searches(spec: DetectorSpec) -> bool:
    """Say whether there is somebody to search for what the passages lack."""
    return spec.retriever is not None and spec.retriever.kind != "given"


def quoted(item: Item, shown: PromptContext, verdict: VerifiedStep) -> tuple[Evidence, ...]:
    """Return the sentence of the passages that settles a step; none if it is not there."""
    if not verdict.sentence or not shown.passages:
        return ()
    stance = _STANCES.get(verdict.error, "closest")
    return evidence(item, shown.passages, verdict.sentence, stance=stance)


def marked(
    item: Item,
    step: ReasoningStep,
    verdict: VerifiedStep,
    quotes: tuple[Evidence, ...],
    *,
    words: bool,
) -> list[Span]:
    """Return the spans of a step: itself if it is wrong, and within it the wrong words.

    Args:
        item: the item with its passages.
        step: the step.
        verdict: what was said of it.
        quotes: what of the passages is to be read beside it.
        words: whether the wrong words are marked, too.
    """
    if verdict.error is None:
        return []
    places = [(step.start, step.end)]
    if words and verdict.error in _WORDS_ARE_WRONG and verdict.words:
        named = [ModelQuote(text) for text in verdict.words if text.strip()]
        mapping = map_quotes(step.text, named)
        places += [(step.start + span.start, step.start + span.end) for span in mapping.spans]
    note = " ".join(part for part in (verdict.diagnosis, verdict.guidance) if part)
    fields: Mapping[str, object] = {"label": str(verdict.error), "note": note or None}
    return [
        Span.of(item.answer, start, end, evidence=quotes).model_copy(update=fields)
        for start, end in dict.fromkeys(places)
    ]


def traced(
    number: int, step: ReasoningStep, verdict: VerifiedStep, quotes: tuple[Evidence, ...] = ()
) -> ReasoningTraceStep:
    """Return a step of the answer with what was said of it, for the trace."""
    error = verdict.error
    return ReasoningTraceStep(
        number=number,
        text=step.text,
        does=str(step.kind or verdict.kind or StepKind.ATTRIBUTION),
        error=None if error is None else str(error),
        family=None if error is None else str(error.family),
        diagnosis=verdict.diagnosis,
        guidance=verdict.guidance,
        passages=tuple(dict.fromkeys(quote.passage for quote in quotes)),
        places=(AnswerPlace(start=step.start, end=step.end),),
    )

"""``ucsc-extract``: quote what the context does not support, find the quotes in the answer.

After Huang et al. 2025, "UCSC at SemEval-2025 Task 3: Context, Models and Prompt Optimization for
Automated Hallucination Detection in LLM Output", direct text extraction.

1. Context is retrieved for the question (``system``).
2. A model copies the words of the answer that the context contradicts or does not support, each
   with a probability: one call (``SpanExtraction``).
3. Every quote is put at its own place in the answer (``UcscExtract.mark``).

Published scores on the English test set, the paper's and not of this code: IoU .56 and Corr .52
with context, .44 and .43 without.

Deviations. The prompt is our own. What the passages do not say is unsupported only where the model
is not certain of it either, unless the option ``unsupported`` says "passages", as the paper does.
A quote that stands several times goes to the place that its order among the others fits, not to
the first. The words before it are not asked for: with perfect quotes of Mu-SHROOM's 499 items they
are worth .003 IoU, and every quote would cost them. A quote that stands nowhere is reported in the
trace and marks nothing; if none stands in the answer, the model is asked once more, and then the
item has failed: such a reply says nothing of this answer. Quotes without a probability count 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import dspy

from spanlab.base.runtime import wait
from spanlab.detection.base import DetectorKit
from spanlab.detection.common.context import readable
from spanlab.detection.common.evidence import evidence
from spanlab.detection.common.model_detector import quote_steps, span_of
from spanlab.models.adapters import PromptText
from spanlab.schema import Annotation, Item
from spanlab.systems.ucsc import ExtractOptions
from spanlab.systems.ucsc.system import ExplainedPart, UcscDetector, UnsupportedPart
from spanlab.text.quotes import ModelQuote, map_quotes


class UcscExtract(UcscDetector):
    """Marks the quotes of a model that reads the answer beside its context."""

    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Put every quote at its place."""
        parts: Sequence[UnsupportedPart] = prediction.parts or ()
        quotes = [
            ModelQuote(part.text, part.probability, part.reason or None)
            for part in parts
            if part.text.strip()
        ]
        mapping = map_quotes(item.answer, quotes, floor=self._options.floor)
        self.note_quotes(quotes, mapping)
        spans = [
            span_of(item.answer, span, None if span.quote is None else quotes[span.quote].reason)
            for span in mapping.spans
        ]
        return self.annotation(spans=spans, trace=quote_steps(quotes, mapping))

    def expected(self, item: Item, quotes: Sequence[ModelQuote]) -> Mapping[str, object]:
        """Return the gold spans as the program should quote them."""
        part = ExplainedPart if self._options.explain else UnsupportedPart
        parts = [
            part(
                text=quote.text,
                reason=quote.reason or self._reason(item, quote.text),
                probability=quote.prob,
            )
            for quote in quotes
        ]
        return {"parts": parts}

    @property
    def _options(self) -> ExtractOptions:
        return ExtractOptions.model_validate(self.kit.spec.options)

    def _reason(self, item: Item, text: str) -> str:
        """Return why words are wrong, as far as the passages tell."""
        near = evidence(item, readable(item, self.kit.retriever.name), text)
        return f"the passages say: “{near[0].text}”" if near else "the passages do not say so"


class FindUnsupported(dspy.Signature):
    """Find the wrong words of an answer.

    Compare each name, number, date and statement of the answer with the passages. Copy the wrong
    words from the answer, letter by letter: as few words as carry the error. `rule` says what is
    wrong. The probability is the share of careful readers who would mark these words. If
    everything is right, the list is empty.
    """

    passages: str = dspy.InputField(desc="what was found on the question, numbered")
    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer to check; only its words may be copied")
    rule: str = dspy.InputField(desc="what counts as wrong")
    parts: list[UnsupportedPart] = dspy.OutputField(desc="the wrong words, in order")


INSISTING: Final = PromptText("""

An earlier reply quoted words that do not stand in the answer. Quote the answer alone, letter by
letter; if nothing in it is wrong, return an empty list.""")


def is_quoted(text: str, answer: str) -> bool:
    """Say whether a quote stands in the answer, as the mapper would find it."""
    return bool(map_quotes(answer, [ModelQuote(text)]).mapped)


# MIPROv2 shows this source to the model that writes prompts; a generic class would say less.
class SpanExtraction(dspy.Module):
    """The model's part: one call that names the hallucinated words.

    Args:
        reasoning: let the model think in words first.
        explain: ask for a reason of each quote.
    """

    def __init__(self, *, reasoning: bool = False, explain: bool = False) -> None:
        super().__init__()
        task: type[dspy.Signature] = FindUnsupported
        if explain:
            task = task.with_updated_fields("parts", type_=list[ExplainedPart])
        self.extract = (dspy.ChainOfThought if reasoning else dspy.Predict)(task)

    def forward(self, **inputs: str) -> dspy.Prediction:
        """Return ``parts``; blocks until the model has answered."""
        return wait(self.acall(**inputs))

    async def aforward(self, **inputs: str) -> dspy.Prediction:
        """Return ``parts``, a list of `Part`, for passages, question, answer and rule.

        Where none of them stands in the answer the model is asked once more: it has copied a
        demonstration, or speaks of something else.
        """
        prediction = await self.extract.acall(**inputs)
        texts = [part.text for part in prediction.parts or () if part.text.strip()]
        if texts and not any(is_quoted(text, inputs["answer"]) for text in texts):
            task = self.named_predictors()[0][1].signature
            insisting = task.with_instructions(task.instructions + INSISTING)
            prediction = await self.extract.acall(**inputs, signature=insisting, demos=[])
        return prediction


def create(kit: DetectorKit) -> UcscExtract:
    """Build ``ucsc-extract``."""
    options = ExtractOptions.model_validate(kit.spec.options)
    program = SpanExtraction(reasoning=kit.spec.reasoning, explain=options.explain)
    return UcscExtract(kit, program, guided="extract")

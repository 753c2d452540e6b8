"""The system of Huang et al. (2025): context, detection, mapping; the forms of replies.

No worked example is shown but those of a tuned program: small models copy it instead of reading
the item (the guide's page on prompts has what was measured).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import dspy
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from spanlab.base.errors import UnparsableAnswerError
from spanlab.detection.base import DetectorKit
from spanlab.detection.common.context import PromptContext, context, query_steps
from spanlab.detection.common.evidence import explained
from spanlab.detection.common.label_options import labels_in
from spanlab.detection.common.labelling import ChooseLabels, asked_of, labelled
from spanlab.detection.common.model_detector import DetectionCase, ModelDetector
from spanlab.models.adapters import PromptText
from spanlab.models.values import Judged, Prob, ReplyModel, Text, Texts, field_value, has_field
from spanlab.schema import Annotation, Item, RemarkStep
from spanlab.text.quotes import ModelQuote
from spanlab.text.tokens import load

RULES: Mapping[str, PromptText] = {  # what is unsupported, by the option of that name
    "passages": PromptText(
        "Wrong is what the passages contradict or do not say, even if you are certain that it is "
        "right."
    ),
    "certain": PromptText(
        "Wrong is what the passages contradict. What they do not say is wrong, too, unless you are "
        "certain that it is right."
    ),
}

NO_ANSWER = "the answer is empty: there is nothing to check"


class UcscDetector(ModelDetector):
    """Retrieve context, let a model find what the answer says beyond it, map that to spans."""

    rules: ClassVar[Mapping[str, PromptText]] = RULES

    def __init__(self, kit: DetectorKit, program: dspy.Module, *, guided: str) -> None:
        super().__init__(kit, program, guided=guided)
        self._labels = labels_in(str(kit.spec.options.get("labels", "")))

    async def steps(self, case: DetectionCase) -> Annotation:
        """Take an item through the system's steps."""
        if not case.item.answer.strip():
            return self.annotation(note=NO_ANSWER)
        loading = load(case.item.lang)  # beside the model's calls
        # 1. Context retrieval.
        await case.retrieve(self.kit.retriever)
        read = self._context(case.item)
        case.trace.extend(query_steps(case.item, self.kit.retriever.name))
        case.trace.extend([RemarkStep(text=read.remark)] if read.remark else [])
        # 2. Hallucinated content detection.
        prediction = await self.ask(**self._inputs(case.item, read))
        if not loading.done():
            await asyncio.wrap_future(loading)
        # 3. Span mapping.
        marked = self.mark(case.item, prediction)
        marked = await self._labelled(case.item, read, marked)
        note = None if read.passages else read.remark
        return explained(case.item, marked, read.passages).model_copy(update={"note": note})

    async def _labelled(self, item: Item, read: PromptContext, marked: Annotation) -> Annotation:
        labels = self._labels
        if not labels or not marked.spans:
            return marked
        inputs = {"passages": read.text, "question": item.question, "answer": item.answer}
        try:
            said = await self.ask(dspy.Predict(ChooseLabels), **inputs, **asked_of(marked, labels))
        except UnparsableAnswerError:  # what is marked is known all the same
            return labelled(marked, labels, ())
        return labelled(marked, labels, said.chosen or ())

    def inputs(self, item: Item) -> Mapping[str, str]:
        """Return what the program is called with; see ``Tunable``."""
        return self._inputs(item, self._context(item))

    @abstractmethod
    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Map what the program said to spans; see ``Tunable``."""

    def expected(self, item: Item, quotes: Sequence[ModelQuote]) -> Mapping[str, object]:
        """Return what a perfect program gives, where labels say so; see ``Tunable``."""
        return {}

    def _context(self, item: Item) -> PromptContext:
        return context(item, self.kit.retriever.name, self.kit.spec.context)

    def _inputs(self, item: Item, read: PromptContext) -> Mapping[str, str]:
        # Without passages everything would be unsupported by them.
        given = self.kit.spec.options.get("unsupported", "certain") if read.passages else "certain"
        texts = {"passages": read.text, "question": item.question, "answer": item.answer}
        return {**texts, "rule": str(self.rules[str(given)])}


class UnsupportedPart(ReplyModel):
    """Words copied from the answer, and how likely a reader marks them (0 to 1)."""

    text: Text = Field(description="the words, letter by letter")
    probability: Prob = Field(description="0 to 1")
    # Read where it is given, and not asked for: it makes replies four times as long.
    reason: SkipJsonSchema[Text] = Field("", exclude=True)

    @classmethod
    def is_one(cls, given: Mapping[str, object]) -> bool:
        """Say whether an object quotes anything."""
        return has_field(given, "text")


class ExplainedPart(UnsupportedPart):
    """Words copied from the answer, why they are wrong, how likely a reader marks them (0 to 1)."""

    reason: Text = Field(description="why, in a few words")


class AtomicFact(ReplyModel):
    """An atomic fact, understandable by itself, and the words copied from the answer behind it."""

    fact: Text = Field(description="what it states, in the language of the answer")
    sentence: Text = Field(description="the words of the answer behind it, letter by letter")

    @classmethod
    def is_one(cls, given: Mapping[str, object]) -> bool:
        """Say whether an object states anything."""
        return has_field(given, "fact")


class FactJudgement(ReplyModel):
    """Names to look up next, or none and why, the verdict, and how sure it is from 0 to 1."""

    look_up: Texts = Field(description="a list of names, empty to decide")
    reason: Text = Field(description="why, in a few words")
    verdict: Judged = Field(description="supported, refuted or not-enough-evidence")
    confidence: Prob = Field(description="how sure the verdict is, 0 to 1")

    @classmethod
    def is_one(cls, given: Mapping[str, object]) -> bool:
        """Say whether an object decides anything."""
        return bool(field_value(given, "look_up") or field_value(given, "verdict"))

"""The system of Huang et al. (2025): context, detection, mapping; worked examples, replies.

They are shown until a tuned program brings its own. An example says more than an instruction: what
is copied, how little of it, and how likely it is.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import dspy
from pydantic import Field

from spanlab.detectors.common.context import PromptContext, context, query_steps
from spanlab.detectors.common.evidence import explained
from spanlab.detectors.common.model_detector import DetectionCase, ModelDetector
from spanlab.lm.values import Judged, Prob, ReplyModel, Text, Texts, field_value, has_field
from spanlab.mappers import ModelQuote, load
from spanlab.schema import Annotation, Demo, Item, RemarkStep

RULES: Mapping[str, str] = {  # what is unsupported, by the option of that name
    "passages": "Unsupported is what the passages contradict or do not say, even if you are "
    "certain that it is right.",
    "certain": "Unsupported is what the passages contradict. What they do not say is unsupported, "
    "too, unless you are certain that it is right.",
}

NO_ANSWER = "the answer is empty: there is nothing to check"


class UcscDetector(ModelDetector):
    """Retrieve context, let a model find what the answer says beyond it, map that to spans."""

    rules: ClassVar[Mapping[str, str]] = RULES

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
        note = None if read.passages else read.remark
        return explained(case.item, marked, read.passages).model_copy(update={"note": note})

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
        return {**texts, "rule": self.rules[str(given)]}


def show_examples(program: dspy.Module) -> None:
    """Give every predictor of a program its worked example."""
    for name, predictor in program.named_predictors():
        predictor.demos = [dict(EXAMPLES[name.removesuffix(".predict")])]


_QUESTION: Final = "When was the lighthouse of Norvik finished, and how high is it?"

_PASSAGES: Final = """\
[1] The lighthouse of Norvik, 2019
The lighthouse of Norvik was finished in 1871 by Karl Berg. It is 34 metres high. Visitors climb \
186 steps to its gallery.

[2] Norvik
Norvik is a fishing port of 4,100 people. Its market is held on Tuesdays."""

_ANSWER: Final = (
    "The lighthouse of Norvik was finished in 1817. Karl Berg, who had trained in Sund, made it "
    "34 metres high; its gallery is reached by 34 steps, and many call it the most beautiful of "
    "the coast."
)

_ITEM: Final = {"passages": _PASSAGES, "question": _QUESTION, "answer": _ANSWER}
_STEPS: Final = "The gallery of the lighthouse of Norvik is reached by 34 steps."

EXAMPLES: Final[Mapping[str, Demo]] = {
    "extract": {
        **_ITEM,
        "reasoning": "1817 and the 34 steps contradict the first passage. Of Sund no passage "
        "speaks. The last clause is an opinion. The height is right.",
        "parts": [
            {"text": "1817", "reason": "the passages say 1871", "probability": 0.95},
            {
                "text": "had trained in Sund",
                "reason": "no passage says where he trained",
                "probability": 0.6,
            },
            {
                "text": "34",
                "before": "is reached by",
                "reason": "the passages say 186 steps",
                "probability": 0.95,
            },
            {
                "text": "the most beautiful of the coast",
                "reason": "an opinion that no passage holds",
                "probability": 0.25,
            },
        ],
    },
    "revise": {
        **_ITEM,
        "reasoning": "1817 has to be 1871 and the 34 steps 186. Of Sund no passage speaks.",
        "revised": _ANSWER.replace("1817", "1871")
        .replace(", who had trained in Sund,", "")
        .replace("34 steps", "186 steps"),
    },
    "graph": {
        "passages": _PASSAGES,
        "question": _QUESTION,
        "relations": [
            {"subject": "lighthouse of Norvik", "relation": "finished in", "object": "1871"},
            {"subject": "Karl Berg", "relation": "built", "object": "lighthouse of Norvik"},
            {"subject": "lighthouse of Norvik", "relation": "height", "object": "34 metres"},
            {
                "subject": "lighthouse of Norvik",
                "relation": "steps to its gallery",
                "object": "186 steps",
            },
        ],
    },
    "facts": {
        "question": _QUESTION,
        "answer": _ANSWER,
        "facts": [
            {
                "fact": "The lighthouse of Norvik was finished in 1817.",
                "sentence": "The lighthouse of Norvik was finished in 1817",
            },
            {"fact": "Karl Berg trained in Sund.", "sentence": "who had trained in Sund"},
            {
                "fact": "Karl Berg made the lighthouse of Norvik 34 metres high.",
                "sentence": "made it 34 metres high",
            },
            {"fact": _STEPS, "sentence": "its gallery is reached by 34 steps"},
        ],
    },
    "check": {
        "question": _QUESTION,
        "entities": "lighthouse of Norvik; 1871; Karl Berg; 34 metres; 186 steps",
        "fact": _STEPS,
        "seen": "- lighthouse of Norvik – steps to its gallery – 186 steps",
        "rounds_left": 1,
        "reasoning": "The graph has 186 steps where the fact has 34.",
        "judgement": {
            "look_up": [],
            "reason": "it is 186 steps",
            "verdict": "refuted",
            "confidence": 0.95,
        },
    },
    "words": {
        "question": _QUESTION,
        "answer": _ANSWER,
        "sentence": "its gallery is reached by 34 steps",
        "claim": _STEPS,
        "reason": "it is 186 steps",
        "words": [{"text": "34"}],
    },
}


class UnsupportedPart(ReplyModel):
    """Words copied from the answer, why they are wrong, how likely a reader marks them (0 to 1)."""

    text: Text = Field(description="the words, letter by letter")
    before: Text = Field(
        description="the few words right before them if they stand more than once in the answer, "
        "else empty"
    )
    reason: Text = Field(description="why, in a few words")
    probability: Prob = Field(description="0 to 1")

    @classmethod
    def is_one(cls, given: Mapping[str, object]) -> bool:
        """Say whether an object quotes anything."""
        return has_field(given, "text")


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

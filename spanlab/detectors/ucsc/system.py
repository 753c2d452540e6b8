"""The three steps that all UCSC detectors share: context, detection, mapping."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import dspy

from spanlab.detectors.common.context import Context, asked, context
from spanlab.detectors.common.evidence import explained
from spanlab.detectors.common.model_detector import Case, Modelled
from spanlab.detectors.ucsc.examples import EXAMPLES
from spanlab.mappers import Quote, load
from spanlab.schema import Annotation, Item, RemarkStep

RULES: Mapping[str, str] = {  # what is unsupported, by the option of that name
    "passages": "Unsupported is what the passages contradict or do not say, even if you are "
    "certain that it is right.",
    "certain": "Unsupported is what the passages contradict. What they do not say is unsupported, "
    "too, unless you are certain that it is right.",
}
NO_ANSWER = "the answer is empty: there is nothing to check"


class UcscDetector(Modelled):
    """Retrieve context, let a model find what the answer says beyond it, map that to spans."""

    rules: ClassVar[Mapping[str, str]] = RULES

    async def steps(self, case: Case) -> Annotation:
        """Take an item through the system's steps."""
        if not case.item.answer.strip():
            return self.annotation(note=NO_ANSWER)
        loading = load(case.item.lang)  # beside the model's calls
        # 1. Context retrieval.
        await case.retrieve(self.kit.retriever)
        read = self._context(case.item)
        case.trace.extend(asked(case.item, self.kit.retriever.name))
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

    def expected(self, item: Item, quotes: Sequence[Quote]) -> Mapping[str, object]:
        """Return what a perfect program gives, where labels say so; see ``Tunable``."""
        return {}

    def _context(self, item: Item) -> Context:
        return context(item, self.kit.retriever.name, self.kit.spec.context)

    def _inputs(self, item: Item, read: Context) -> Mapping[str, str]:
        # Without passages everything would be unsupported by them.
        given = self.kit.spec.options.get("unsupported", "certain") if read.passages else "certain"
        texts = {"passages": read.text, "question": item.question, "answer": item.answer}
        return {**texts, "rule": self.rules[str(given)]}


def show_examples(program: dspy.Module) -> None:
    """Give every predictor of a program its worked example."""
    for name, predictor in program.named_predictors():
        predictor.demos = [dict(EXAMPLES[name.removesuffix(".predict")])]

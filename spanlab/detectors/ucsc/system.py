"""The three steps that all UCSC detectors share: context, detection, mapping."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import dspy

from spanlab.detectors.common.context import Context, asked, context
from spanlab.detectors.common.evidence import explained
from spanlab.detectors.common.modelled import Case, Modelled
from spanlab.mappers import Quote, load
from spanlab.schema import Annotation, Item
from spanlab.trace import RemarkStep

NO_ANSWER = "the answer is empty: there is nothing to check"


class UcscDetector(Modelled):
    """Retrieve context, let a model find what the answer says beyond it, map that to spans."""

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
        prediction = await self.ask(**_inputs(case.item, read))
        if not loading.done():
            await asyncio.wrap_future(loading)
        # 3. Span mapping.
        marked = self.mark(case.item, prediction)
        note = None if read.passages else read.remark
        return explained(case.item, marked, read.passages).model_copy(update={"note": note})

    def inputs(self, item: Item) -> Mapping[str, str]:
        """Return what the program is called with; see ``Tunable``."""
        return _inputs(item, self._context(item))

    @abstractmethod
    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Map what the program said to spans; see ``Tunable``."""

    def expected(self, item: Item, quotes: Sequence[Quote]) -> Mapping[str, object]:
        """Return what a perfect program gives, where labels say so; see ``Tunable``."""
        return {}

    def _context(self, item: Item) -> Context:
        return context(item, self.kit.retriever.name, self.kit.spec.context)


def _inputs(item: Item, read: Context) -> Mapping[str, str]:
    return {"passages": read.text, "question": item.question, "answer": item.answer}

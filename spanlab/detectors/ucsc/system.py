"""The three steps that all UCSC detectors share: context, detection, mapping."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import dspy

from spanlab.detectors.modelled import Case, Modelled
from spanlab.detectors.ucsc.context import asked, context
from spanlab.detectors.ucsc.evidence import around_of, evidence
from spanlab.mappers import MappedSpan, Quote, load, sentences
from spanlab.schema import Annotation, Evidence, Item, Kind, Span
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
        read = context(case.item, self.kit.retriever.name, self.kit.spec.context)
        case.trace.extend(asked(case.item, self.kit.retriever.name))
        case.trace.extend([RemarkStep(text=read.remark)] if read.remark else [])
        # 2. Hallucinated content detection.
        prediction = await self.detection(case)
        if not loading.done():
            await asyncio.wrap_future(loading)
        # 3. Span mapping.
        marked = self.mark(case.item, prediction)
        note = None if read.passages else read.remark
        return self.explained(case.item, marked, read.passages).model_copy(update={"note": note})

    async def detection(self, case: Case) -> dspy.Prediction:
        """Run the program on an item, with what was retrieved for it."""
        return await self.ask(**self.inputs(case.item))

    def inputs(self, item: Item) -> Mapping[str, str]:
        """Return what the program is called with; see ``Tunable``."""
        read = context(item, self.kit.retriever.name, self.kit.spec.context)
        return {"passages": read.text, "question": item.question, "answer": item.answer}

    @abstractmethod
    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Map what the program said to spans; see ``Tunable``."""

    def expected(self, item: Item, quotes: Sequence[Quote]) -> Mapping[str, object]:
        """Return what a perfect program gives, where labels say so; see ``Tunable``."""
        return {}

    def explained(self, item: Item, annotation: Annotation, read: Sequence[int]) -> Annotation:
        """Put the sentence of the passages that comes closest beside every span."""
        if not read or not annotation.spans:
            return annotation
        parts = sentences(item.answer, item.lang)
        near: dict[str, tuple[Evidence, ...]] = {}  # by sentence: most hold several spans
        spans = []
        for span in annotation.spans:
            around = around_of(parts, span.start, span.end)
            text = item.answer[around.start : around.end]
            if text not in near:
                near[text] = evidence(item, read, text)
            spans.append(span.model_copy(update={"evidence": near[text]}))
        return annotation.model_copy(update={"spans": tuple(spans)})

    def annotation(self, **fields: object) -> Annotation:
        """Return a finished annotation of this detector."""
        return Annotation.model_validate({"annotator": self.name, "kind": Kind.DETECTOR, **fields})


def span_of(answer: str, found: MappedSpan, note: str | None = None) -> Span:
    """Return a mapped place of the answer as a span, with a note on why it is marked."""
    start, end = found.start, found.end
    text = answer[start:end]
    return Span(start=start, end=end, text=text, prob=found.prob, note=note or None)

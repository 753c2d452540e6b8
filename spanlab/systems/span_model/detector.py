"""``span-model``: one call to a trained model, and its quotes at their places.

The reply is read as the contract says. A reply that is not of its form, and one that quotes nothing
of this answer, is a failure: neither says that nothing is hallucinated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dspy
from pydantic import JsonValue

from spanlab.base.errors import UsageError
from spanlab.base.fields import as_name
from spanlab.detection.base import DetectorKit
from spanlab.detection.common.context import readable
from spanlab.detection.common.evidence import explained
from spanlab.detection.common.model_detector import (
    DetectionCase,
    ModelDetector,
    quote_steps,
    span_of,
)
from spanlab.models.failures import unreadable_answer
from spanlab.models.model import LanguageModel
from spanlab.models.values import UnreadableError, values_in
from spanlab.schema import Annotation, RemarkStep, Span
from spanlab.systems.span_model import SpanModelOptions
from spanlab.systems.span_model.contract import SpanContract, read_contract
from spanlab.text.quotes import ModelQuote, map_quotes

WITHOUT_PASSAGES = "no passages: the model judged the answer by what it knows"


class SpanModel(ModelDetector):
    """Marks what a trained model names."""

    async def steps(self, case: DetectionCase) -> Annotation:
        """Retrieve passages, ask once, and map the quotes."""
        if not case.item.answer.strip():
            return self.annotation(note="the answer is empty: there is nothing to check")
        await case.retrieve(self.kit.retriever)
        indices = readable(case.item, self.kit.retriever.name)
        read = tuple(index for index in indices if case.item.passages[index].text.strip())
        options = SpanModelOptions.model_validate(self.kit.spec.options)
        contract = read_contract(options.contract, case.item, explain=options.explain)
        texts, cut = _within(
            [case.item.passages[index].text for index in read], self.kit.spec.context
        )
        case.trace.extend([RemarkStep(text=cut)] if cut else [])
        reply = await self._ask_for(contract, contract.messages(case.item, texts))
        marked = self._mark(case, spans_in(reply, contract), contract)
        note = None if read else WITHOUT_PASSAGES
        return explained(case.item, marked, read).model_copy(update={"note": note})

    async def _ask_for(self, contract: SpanContract, messages: list[dict[str, str]]) -> str:
        """Return the reply to messages, by the contract's schema if it has one."""
        lm = self.kit.lm()
        if not isinstance(lm, LanguageModel):  # that of `dspy.configure`, which writes prompts
            raise UsageError("span-model asks an endpoint: name its model")
        if contract.reply_schema is None:
            return await lm.chat(messages)
        schema: dict[str, JsonValue] = {"name": "spans", "strict": True}
        schema["schema"] = contract.reply_schema
        return await lm.chat(
            messages, response_format={"type": "json_schema", "json_schema": schema}
        )

    def _mark(
        self, case: DetectionCase, said: Sequence[Mapping[str, str]], contract: SpanContract
    ) -> Annotation:
        """Put every quote at its place, with its label and note."""
        prob = SpanModelOptions.model_validate(self.kit.spec.options).prob
        answer = case.item.answer
        quotes = [
            ModelQuote(span[contract.text], prob, span.get(contract.note) or None) for span in said
        ]
        mapping = map_quotes(answer, quotes)
        self.note_quotes(quotes, mapping)
        spans: list[Span] = []
        for mapped in mapping.spans:
            span = {} if mapped.quote is None else said[mapped.quote]
            kind = span.get(contract.label)
            label = as_name(contract.labels.get(kind, kind)) if kind else None
            placed = span_of(answer, mapped, span.get(contract.note))
            spans.append(placed.model_copy(update={"label": label}))
        return self.annotation(spans=spans, trace=quote_steps(quotes, mapping))


def spans_in(reply: str, contract: SpanContract) -> list[dict[str, str]]:
    """Return the spans that a reply names, each with its text.

    Raises:
        UnparsableAnswerError: it is not of the contract's form.
    """
    try:
        objects = (value for value in values_in(reply) if isinstance(value, dict))
        listed = next((o[contract.spans] for o in objects if contract.spans in o), None)
    except UnreadableError:
        listed = None
    if not isinstance(listed, list):  # also an empty list by itself: it may be of anything
        raise unreadable_answer(reply)
    spans = [{contract.text: span} if isinstance(span, str) else span for span in listed]
    if not all(isinstance(span, dict) and span.get(contract.text) for span in spans):
        raise unreadable_answer(reply)
    return [{name: str(value) for name, value in span.items() if value} for span in spans]


def _within(texts: Sequence[str], budget: int) -> tuple[list[str], str | None]:
    """Return as much of the passages as a budget of characters holds, and what was left out."""
    kept, left = [], budget
    for text in texts:
        kept.append(text[: max(left, 0)])
        left -= len(text)
    if left >= 0:
        return kept, None
    return [text for text in kept if text], f"{-left:,} characters of the passages were left out"


def create(kit: DetectorKit) -> SpanModel:
    """Build ``span-model``."""
    return SpanModel(kit, dspy.Module(), guided="")  # it has no prompt of its own to tune

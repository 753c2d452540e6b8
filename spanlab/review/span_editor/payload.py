"""What goes between editor and Python: messages, and an item's texts with offsets into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from spanlab.base.errors import UsageError
from spanlab.base.fields import message_of
from spanlab.oplog.operations import Review
from spanlab.review.traces import TracedAnnotation
from spanlab.schema import (
    Annotation,
    Claim,
    Evidence,
    Order,
    QueueCursor,
    QueueRow,
    Span,
    Status,
    TraceStep,
)
from spanlab.text.citations import markers_of
from spanlab.text.suggestions import suggestions


class TraceWanted(BaseModel):
    """The trace that the editor asks for, by its annotator and item."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_min_length=0)  # no half an emoji

    item: str
    annotator: str


class EvidenceSent(BaseModel):
    """A passage that somebody adds to an item; ``number`` counts what the editor has sent."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_min_length=0)  # no half an emoji

    number: int
    item: str
    url: str = Field("", max_length=4000)
    text: str = ""
    title: str = Field("", max_length=1000)


class ItemsWanted(BaseModel):
    """Which rows of the table of items the editor asks for; ``number`` counts what it asked."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_min_length=0)  # no half an emoji

    number: int
    text: str = Field("", max_length=1000)
    status: Status | None = None
    label: str | None = None
    order: Order | None = None
    reverse: bool = False
    after: QueueCursor | None = None
    before: QueueCursor | None = None


class EditorMessage(BaseModel):
    """What the editor says: unacknowledged writes, where it is, what it has."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_min_length=0)

    writes: tuple[dict[str, Any], ...] = ()  # looked at one by one: each is refused for itself
    attempt: int = 0
    place: str | None = None
    open: str | None = None
    have: tuple[str, ...] = ()
    near: bool = True
    ahead: str | None = None
    check: bool = False
    trace: TraceWanted | None = None
    items: ItemsWanted | None = None
    evidence: EvidenceSent | None = None
    confirmed: int = Field(0, ge=0, le=2**31 - 1)  # version of the guidelines
    standing: bool = True

    @property
    def decided(self) -> set[str]:
        """The ids of the items that this message finishes, skips or reopens."""
        return {str(write.get("item")) for write in self.writes if is_status(write)}

    @classmethod
    def read(cls, message: object) -> EditorMessage:
        """Return a message of the editor as it arrived; nothing in it is trusted.

        Raises:
            UsageError: it is no such message.
        """
        try:
            return cls.model_validate(message)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"]))
            raise UsageError(
                f"a message of the editor is wrong: {where}: {message_of(problem)}. "
                "Reload the page."
            ) from error


def item_payload(opened: Review, reviewer: str, name: str) -> dict[str, JsonValue]:
    """Return a review as JSON; offsets are code points, and no span repeats its text.

    ``name`` is what the browser is to call the item.
    """
    item = opened.record.item
    return {
        "id": name,
        "lang": item.lang,
        "question": item.question,
        "answer": item.answer,
        "passages": [passage.model_dump() for passage in item.passages],
        "citations": [
            {"start": marker.start, "end": marker.end, "passages": list(marker.passages)}
            for marker in markers_of(item)
        ],
        "annotators": [
            _annotator(annotation, item.answer)
            for annotation in opened.record.annotations
            if annotation.annotator != reviewer
        ],
        "hidden": opened.hidden,
        "snapshot": {
            "spans": {name: _span(span) for name, span in opened.snapshot.spans.items()},
            "rejected": [_span(span) for span in opened.snapshot.rejected],
            "claims": {name: _claim(claim) for name, claim in opened.snapshot.claims.items()},
            "rejected_claims": [
                _claim(rejected_claim) for rejected_claim in opened.snapshot.rejected_claims
            ],
            "status": opened.snapshot.status.value,
            "hallucinated": opened.snapshot.answer_hallucinated,
            "note": opened.snapshot.note,
            "responses": dict(opened.snapshot.responses),
        },
        "operations": [operation.model_dump(mode="json") for operation in opened.operations],
    }


def item_row(row: QueueRow, name: str, *, own_only: bool = False) -> dict[str, JsonValue]:
    """Return a row of the table of items as JSON; of one's own alone without what others said."""
    from_others: dict[str, JsonValue] = {
        "prob": row.max_prob,
        "disagreement": row.disagreement,
        "labels": list(row.labels),
        "claims": row.n_claims,
        "judges": row.n_judges,
        "hallucinated": row.n_hallucinated,
    }
    if own_only:
        from_others = {"prob": None, "disagreement": None, "labels": [], "claims": 0}
        from_others |= {"judges": 0, "hallucinated": 0}
    return {
        **from_others,
        "id": name,
        "lang": row.lang,
        "question": row.question,
        "answer": row.answer,
        "status": row.status.value,
        "passages": row.n_passages,
    }


def trace_payload(traced: TracedAnnotation) -> dict[str, JsonValue]:
    """Return an annotation's trace as JSON, as its steps want it shown."""
    item, annotation = traced.item, traced.annotation
    kinds = dict.fromkeys(type(step) for step in annotation.trace if isinstance(step, TraceStep))
    return {
        "status": annotation.status.value,
        "note": annotation.note,
        "steps": [step.shown(item) for step in annotation.trace],
        "evidence": [_evidence(quote) for quote in traced.evidence()],
        **{k: v for kind in kinds for k, v in kind.shown_beside(item, annotation).items()},
    }


def _annotator(annotation: Annotation, answer: str) -> dict[str, JsonValue]:
    return {
        "name": annotation.annotator,
        "kind": annotation.kind.value,
        "status": annotation.status.value,
        "verdict": annotation.hallucinated if annotation.is_verdict_only else None,
        "note": annotation.note,
        "voters": list(annotation.voters),
        "steps": len(annotation.trace),
        "spans": [
            {
                **_span(suggestion.span),
                "likely": suggestion.likely,
                "joins": suggestion.joins,
                **(
                    {"graded": [_extent_payload(span) for span in suggestion.graded]}
                    if suggestion.graded
                    else {}
                ),
            }
            for suggestion in suggestions(annotation, answer)
        ],
        "claims": [_claim(claim) for claim in annotation.claims],
        "responses": dict(annotation.responses),
    }


def _extent_payload(span: Span) -> JsonValue:
    return {"start": span.start, "end": span.end, "prob": span.prob}


def _span(span: Span) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {"start": span.start, "end": span.end, "prob": span.prob}
    if span.label is not None:
        values["label"] = span.label
    if span.note is not None:
        values["note"] = span.note
    if span.source is not None:
        values["source"] = span.source
    if span.voters:
        values["voters"] = list(span.voters)
    if span.attributes:
        values["attributes"] = dict(span.attributes)
    if span.evidence:
        values["evidence"] = [_evidence(quote) for quote in span.evidence]
    return values


def _claim(claim: Claim) -> dict[str, JsonValue]:
    source = claim.source
    return {
        "text": claim.text,
        "source": None if source is None else {"start": source.start, "end": source.end},
        "verdict": claim.verdict,
        "prob": claim.prob,
        "evidence": [_evidence(quote) for quote in claim.evidence],
        "note": claim.note,
        "error_stages": list(claim.error_stages),
        "suggested_by": claim.suggested_by,
        "voters": list(claim.voters),
    }


def _evidence(quote: Evidence) -> dict[str, JsonValue]:
    return quote.model_dump(exclude={"text"})


def is_status(write: Mapping[str, JsonValue]) -> bool:
    """Say whether a write from the browser sets an item's state."""
    operation = write.get("op")
    return isinstance(operation, Mapping) and operation.get("kind") in {
        "status",
        "finish",
        "undo",
        "redo",
    }

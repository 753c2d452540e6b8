"""What a reviewer has made of an item, and the suggestions that it was made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from spanlab.base.errors import OperationError
from spanlab.base.fields import FrozenModel
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Evidence,
    Item,
    Name,
    Offset,
    Probability,
    Responses,
    Span,
    Stance,
    Status,
)

_T = TypeVar("_T")
Comment = Annotated[str, Field(max_length=10_000)]  # empty takes a comment away


class BaseEdit(FrozenModel):
    """An operation that makes one state from another; undo and redo need the whole log."""

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        """Return the state after this edit.

        Raises:
            OperationError: it names a span or claim that is not there, or characters outside the
                answer.
        """
        raise NotImplementedError


def named(kind: str, names: Sequence[str], marks: Sequence[_T]) -> list[tuple[str, _T]]:
    """Return what an operation of this kind takes over, each with the id it gets.

    Raises:
        OperationError: there are not as many ids as suggestions, or one is there twice.
    """
    if len(set(names)) < len(names):
        raise OperationError(f"{kind} has an id twice")
    if len(names) != len(marks):
        raise OperationError(f"{kind} has {len(names)} ids for {len(marks)} suggestions")
    return list(zip(names, marks, strict=True))


_Key: TypeAlias = tuple[str | None, int, int, str | None]  # what makes two suggestions the same


class CitedQuote(FrozenModel):
    """A part of a passage as an operation names it; the quoted text is looked up."""

    passage: Offset
    start: Offset
    end: Offset
    stance: Stance = "closest"
    note: str | None = None


class SuggestionMark(FrozenModel):
    """A suggestion as an operation names it: whose it is, what it covers and what speaks for it.

    ``source`` is an annotator, or "union" or "majority": how it was made from those of ``voters``.
    """

    source: Name
    start: Offset
    end: Offset
    prob: Probability = 1.0
    label: Name | None = None
    voters: tuple[Name, ...] = ()
    evidence: tuple[CitedQuote, ...] = ()
    attributes: Responses = Field(default_factory=dict)


def refuse(item: Item, state: ReviewState, marks: Iterable[SuggestionMark]) -> ReviewState:
    """Return the state with suggestions refused, and what had been taken from them gone."""
    refused: dict[_Key, Span] = {}
    for mark in marks:
        span = suggested(item, mark).model_copy(update={"prob": mark.prob})
        refused.pop(_key(span), None)  # named again, it stands last
        refused[_key(span)] = span
    going = [span for span in state.spans.values() if _key(span) in refused]
    comments = _comments((*going, *state.noted, *state.rejected))
    noted = [
        span.model_copy(update={"note": comments.get(place_of(span))}) for span in refused.values()
    ]
    before = [span for span in state.rejected if _key(span) not in refused]
    return state.model_copy(
        update={
            "spans": {name: s for name, s in state.spans.items() if _key(s) not in refused},
            "rejected": (*before, *noted),
            "noted": without(state.noted, noted),
        }
    )


def take(item: Item, state: ReviewState, taken: list[tuple[str, SuggestionMark]]) -> ReviewState:
    """Return the state with suggestions taken over, under the ids given.

    Raises:
        OperationError: an id is in use.
    """
    spans: dict[str, Span] = {}
    comments = _comments((*state.noted, *state.rejected))
    for name, mark in taken:
        if name in state.spans:
            raise OperationError(f"span id {name!r} is already in use")
        span = suggested(item, mark)
        spans[name] = span.model_copy(update={"note": comments.get(place_of(span))})
    keys = {_key(span) for span in spans.values()}
    return state.model_copy(
        update={
            "spans": {**state.spans, **spans},
            "rejected": tuple(span for span in state.rejected if _key(span) not in keys),
            "noted": without(state.noted, spans.values()),
        }
    )


def _comments(spans: Sequence[Span]) -> dict[tuple[int, int], str]:
    """Return the first note on the characters of each span, whoever suggests them."""
    return {place_of(span): span.note for span in reversed(spans) if span.note}


def without(spans: Iterable[Span], decided: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans that do not cover exactly the characters of one of ``decided``."""
    places = {place_of(span) for span in decided}
    return tuple(span for span in spans if place_of(span) not in places)


def place_of(span: Span) -> tuple[int, int]:
    """Return the characters that a span covers."""
    return (span.start, span.end)


def quote(item: Item, start: int, end: int) -> Span:
    """Return the span of these characters of the answer.

    Raises:
        OperationError: they are not all in the answer.
    """
    if not 0 <= start < end <= len(item.answer):
        raise OperationError(
            f"[{start}, {end}) is not a part of the answer's {len(item.answer)} characters"
        )
    return Span.of(item.answer, start, end)


def suggested(item: Item, mark: SuggestionMark) -> Span:
    """Return a suggestion as a span.

    Raises:
        OperationError: it names characters that are not there.
    """
    return quote(item, mark.start, mark.end).model_copy(
        update={
            "label": mark.label,
            "source": mark.source,
            "voters": mark.voters,
            "attributes": mark.attributes,
            "evidence": tuple(cite(item, cited) for cited in mark.evidence),
        }
    )


def cite(item: Item, cited: CitedQuote) -> Evidence:
    """Return the part of a passage with its text.

    Raises:
        OperationError: it names characters that are not there.
    """
    whole = item.passages[cited.passage].text if cited.passage < len(item.passages) else ""
    if not cited.start < cited.end <= len(whole):
        raise OperationError(
            f"[{cited.start}, {cited.end}) is not a part of passage {cited.passage}, "
            f"which has {len(whole)} characters"
        )
    return Evidence(text=whole[cited.start : cited.end], **dict(cited))


def _key(span: Span) -> _Key:
    return (span.source, span.start, span.end, span.label)


class ReviewState(BaseModel):
    """A person's annotation with an id per span and claim, in the order in which they were made.

    ``noted`` are suggestions with a comment that are not decided: they are no part of the
    annotation, and a comment moves to the span once its suggestion is accepted or rejected.
    """

    model_config = ConfigDict(frozen=True)

    spans: dict[str, Span] = Field(default_factory=dict)
    rejected: tuple[Span, ...] = ()
    noted: tuple[Span, ...] = ()
    claims: dict[str, Claim] = Field(default_factory=dict)
    rejected_claims: tuple[Claim, ...] = ()
    status: Status = Status.NOT_ANNOTATED
    answer_hallucinated: bool | None = None
    note: str | None = None
    responses: Responses = Field(default_factory=dict)

    @classmethod
    def of(cls, annotation: Annotation | None) -> ReviewState:
        """Return the state an imported annotation starts from; ids count up from ``i0``."""
        if annotation is None:
            return cls()
        return cls(
            spans={f"i{index}": span for index, span in enumerate(annotation.spans)},
            rejected=annotation.rejected,
            claims={f"i{index}": claim for index, claim in enumerate(annotation.claims)},
            rejected_claims=annotation.rejected_claims,
            status=annotation.status,
            answer_hallucinated=annotation.answer_hallucinated,
            note=annotation.note,
            responses=annotation.responses,
        )

    def annotation(self, annotator: str, kind: AnnotatorKind = AnnotatorKind.PERSON) -> Annotation:
        """Return what this state says as the annotation of ``annotator``, spans in text order."""
        return Annotation(
            annotator=annotator,
            kind=kind,
            status=self.status,
            answer_hallucinated=self.answer_hallucinated,
            spans=tuple(sorted(self.spans.values(), key=_place)),
            rejected=tuple(sorted(self.rejected, key=_place)),
            claims=tuple(self.claims.values()),
            rejected_claims=self.rejected_claims,
            # A review may take the note of an imported failure, but a failure has a reason.
            note=self.note or ("no reason was given" if self.status is Status.FAILED else None),
            responses=self.responses,
        )


def _place(span: Span) -> tuple[int, int, str]:
    return (span.start, span.end, span.label or "")


def change_span(state: ReviewState, name: str, update: dict[str, object]) -> ReviewState:
    """Return the state with fields of one of the reviewer's own spans changed; see ``own_span``."""
    span = own_span(state, name).model_copy(update=update)
    return state.model_copy(update={"spans": {**state.spans, name: span}})


def own_span(state: ReviewState, name: str) -> Span:
    """Return one of the reviewer's own spans.

    Raises:
        OperationError: there is none with this id.
    """
    try:
        return state.spans[name]
    except KeyError:
        raise OperationError(f"there is no span with the id {name!r}") from None

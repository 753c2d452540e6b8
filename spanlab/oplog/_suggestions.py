"""Suggestions as operations name them: looked up, taken over, refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from spanlab.errors import OperationError
from spanlab.oplog._state import ReviewState
from spanlab.schema import Evidence, Frozen, Item, Name, Offset, Probability, Span, Stance

_Key: TypeAlias = tuple[str | None, int, int, str | None]  # what makes two suggestions the same


class Cited(Frozen):
    """A part of a passage as an operation names it; the quoted text is looked up."""

    passage: Offset
    start: Offset
    end: Offset
    stance: Stance = "closest"
    note: str | None = None


class Mark(Frozen):
    """A suggestion as an operation names it: whose it is, what it covers and what speaks for it.

    ``source`` is an annotator, or "union" or "majority": how it was made from those of ``voters``.
    """

    source: Name
    start: Offset
    end: Offset
    prob: Probability = 1.0
    label: Name | None = None
    voters: tuple[Name, ...] = ()
    evidence: tuple[Cited, ...] = ()


def refuse(item: Item, state: ReviewState, marks: Iterable[Mark]) -> ReviewState:
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


def take(item: Item, state: ReviewState, taken: list[tuple[str, Mark]]) -> ReviewState:
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


def suggested(item: Item, mark: Mark) -> Span:
    """Return a suggestion as a span.

    Raises:
        OperationError: it names characters that are not there.
    """
    return quote(item, mark.start, mark.end).model_copy(
        update={
            "label": mark.label,
            "source": mark.source,
            "voters": mark.voters,
            "evidence": tuple(cite(item, cited) for cited in mark.evidence),
        }
    )


def cite(item: Item, cited: Cited) -> Evidence:
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

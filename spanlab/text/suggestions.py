"""An annotation as suggestions: what a reviewer decides on, each with all that speaks for it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from spanlab.schema import Annotation, Interval, Span
from spanlab.text.extents import trim_space


@dataclass(frozen=True)
class Suggestion:
    """A span to decide on; ``likely`` if its annotator takes all of it for hallucinated.

    ``graded`` are the spans of which it was put together, where they are not as probable all over.
    ``joins`` is the end of the suggestion before it with which it is shown as one, if any: at most
    a space is between them, and they have one label and, where their annotator decided, one
    decision.
    """

    span: Span
    likely: bool
    graded: tuple[Span, ...] = ()
    joins: int | None = None


def suggestions(annotation: Annotation, answer: str) -> list[Suggestion]:
    """Return an annotation's spans as suggestions that a reviewer decides on, in text order.

    Each piece of ``hard`` is one suggestion, with the highest probability and all evidence of the
    spans within; where some evidence refutes, spans with only closest passages add nothing.
    White space at the edges of a span is no part of its suggestion.
    """
    decisions = _decisions(annotation, answer)
    trimmed = [replace(suggestion, span=_trim(suggestion.span, answer)) for suggestion in decisions]
    trimmed.sort(key=lambda suggestion: (suggestion.span.start, suggestion.span.end))
    for at, (one, two) in enumerate(pairwise(trimmed), start=1):
        is_decided = annotation.hard is not None
        if (
            answer[one.span.end : two.span.start] in {"", " "}
            and one.span.end <= two.span.start
            and one.span.label == two.span.label
            and not (is_decided and one.likely != two.likely)
        ):
            trimmed[at] = replace(two, joins=one.span.end)
    return trimmed


def count_weaker(suggested: Iterable[Suggestion]) -> int:
    """Return how many suggestions of an annotation are not likely, those shown as one as one."""
    weaker = [suggestion for suggestion in suggested if not suggestion.likely]
    ends = {suggestion.span.end for suggestion in weaker}
    return sum(suggestion.joins not in ends for suggestion in weaker)


def _trim(span: Span, answer: str) -> Span:
    start, end = trim_space(answer, span)
    if (start, end) == (span.start, span.end):
        return span
    return span.model_copy(update={"start": start, "end": end, "text": answer[start:end]})


def _decisions(annotation: Annotation, answer: str) -> list[Suggestion]:
    if annotation.hard is None:
        return [Suggestion(span, span.prob > 0.5) for span in annotation.spans]
    pieces = sorted(annotation.hard, key=lambda piece: piece.start)
    inside: list[list[Span]] = [[] for _ in pieces]
    suggested: list[Suggestion] = []
    for span in annotation.spans:
        at = bisect_right(pieces, span.start, key=lambda piece: piece.start) - 1
        if at >= 0 and span.end <= pieces[at].end:
            inside[at].append(span)
        else:
            suggested.append(Suggestion(span, likely=False))
    for piece, spans in zip(pieces, inside, strict=True):
        graded = tuple(spans) if _is_graded(spans, piece) else ()
        suggested.append(Suggestion(_join_spans(spans, piece, answer), likely=True, graded=graded))
    return suggested


def _is_graded(spans: Sequence[Span], piece: Interval) -> bool:
    """Return whether the characters of a piece have more than one probability."""
    covered = sum(span.end - span.start for span in spans)
    return bool(spans) and (
        len({span.prob for span in spans}) > 1 or covered < piece.end - piece.start
    )


def _join_spans(spans: Sequence[Span], piece: Interval, answer: str) -> Span:
    span_of_piece = Span.of(
        answer, piece.start, piece.end, prob=max((span.prob for span in spans), default=1.0)
    )
    refuted = any(quote.stance == "refutes" for span in spans for quote in span.evidence)
    telling = [span for span in spans if not (refuted and _only_closest(span))]
    return span_of_piece.model_copy(
        update={
            "label": next((span.label for span in spans if span.label), None),
            "attributes": next((span.attributes for span in spans if span.attributes), {}),
            "note": "; ".join(dict.fromkeys(span.note for span in telling if span.note)) or None,
            "evidence": tuple(dict.fromkeys(quote for span in telling for quote in span.evidence)),
        }
    )


def _only_closest(span: Span) -> bool:
    return all(quote.stance == "closest" for quote in span.evidence)

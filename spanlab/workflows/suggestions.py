"""What annotators say of an answer as suggestions: the pieces that a reviewer decides on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spanlab.extents import trim_space
from spanlab.schema import Annotation, Interval, Span


@dataclass(frozen=True)
class Suggestion:
    """A span to decide on; ``likely`` if its annotator takes all of it for hallucinated.

    ``graded`` are the spans of which it was put together, where they are not as probable all over.
    """

    span: Span
    likely: bool
    graded: tuple[Span, ...] = ()


def suggestions(annotation: Annotation, answer: str) -> list[Suggestion]:
    """Return an annotation's spans as a reviewer decides on them, in text order.

    What an annotator decided as one piece (``hard``) is one suggestion, with the highest of its
    probabilities, however finely they are graded within, and with all of its evidence; where some
    refutes, spans of which something is only closest add nothing.
    White space at the edges of a span is no part of its suggestion: nobody means to mark it.
    """
    found = _decisions(annotation, answer)
    trimmed = [replace(one, span=_trimmed(one.span, answer)) for one in found]
    return sorted(trimmed, key=lambda one: (one.span.start, one.span.end))


def _trimmed(span: Span, answer: str) -> Span:
    start, end = trim_space(answer, span)
    if (start, end) == (span.start, span.end):
        return span
    return span.model_copy(update={"start": start, "end": end, "text": answer[start:end]})


def _decisions(annotation: Annotation, answer: str) -> list[Suggestion]:
    if annotation.hard is None:
        return [Suggestion(span, span.prob > 0.5) for span in annotation.spans]
    pieces = sorted(annotation.hard, key=lambda piece: piece.start)
    inside: list[list[Span]] = [[] for _ in pieces]
    found: list[Suggestion] = []
    for span in annotation.spans:
        at = bisect_right(pieces, span.start, key=lambda piece: piece.start) - 1
        if at >= 0 and span.end <= pieces[at].end:
            inside[at].append(span)
        else:
            found.append(Suggestion(span, likely=False))
    for piece, spans in zip(pieces, inside, strict=True):
        graded = tuple(spans) if _differ(spans, piece) else ()
        found.append(Suggestion(_joined(spans, piece, answer), likely=True, graded=graded))
    return found


def _differ(spans: Sequence[Span], piece: Interval) -> bool:
    """Return whether spans within a piece are not one probability for all of its characters."""
    covered = sum(span.end - span.start for span in spans)
    return bool(spans) and (
        len({span.prob for span in spans}) > 1 or covered < piece.end - piece.start
    )


def _joined(spans: Sequence[Span], piece: Interval, answer: str) -> Span:
    whole = Span.of(
        answer, piece.start, piece.end, prob=max((span.prob for span in spans), default=1.0)
    )
    refuted = any(quote.stance == "refutes" for span in spans for quote in span.evidence)
    telling = [span for span in spans if not (refuted and _only_closest(span))]
    return whole.model_copy(
        update={
            "label": next((span.label for span in spans if span.label), None),
            "note": "; ".join(dict.fromkeys(span.note for span in telling if span.note)) or None,
            "evidence": tuple(dict.fromkeys(quote for span in telling for quote in span.evidence)),
        }
    )


def _only_closest(span: Span) -> bool:
    return all(quote.stance == "closest" for quote in span.evidence)

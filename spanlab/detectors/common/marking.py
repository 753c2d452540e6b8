"""What a mapper found, as spans of an annotation and as steps of its trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spanlab.extents import Extent
from spanlab.mappers import MappedSpan, Quote, QuoteMapping
from spanlab.schema import Place, QuoteStep, Span


def span_of(answer: str, found: MappedSpan, note: str | None = None) -> Span:
    """Return a mapped place of the answer as a span, with a note on why it is marked."""
    start, end = found.start, found.end
    text = answer[start:end]
    return Span(start=start, end=end, text=text, prob=found.prob, note=note or None)


def strongest(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, one for each place: that with the highest probability."""
    best: dict[tuple[int, int], Span] = {}
    for span in spans:
        known = best.get((span.start, span.end))
        if known is None or known.prob < span.prob:
            best[span.start, span.end] = span
    return [best[place] for place in sorted(best)]


def places_of(found: Iterable[Extent | MappedSpan]) -> tuple[Place, ...]:
    """Return places of the answer as a step of a trace holds them."""
    return tuple(Place(start=each.start, end=each.end) for each in found)


def quote_steps(quotes: Sequence[Quote], found: QuoteMapping) -> list[QuoteStep]:
    """Return what was quoted and where it stands; quotes that were not found have no places."""
    places = {mapped.quote: mapped.places for mapped in found.mapped}
    return [
        QuoteStep(
            text=quote.text,
            prob=quote.prob,
            reason=quote.reason,
            places=places_of(places.get(index, ())),
        )
        for index, quote in enumerate(quotes)
    ]

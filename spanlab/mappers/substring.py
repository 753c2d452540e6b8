"""Substring mapper: every quote of a model to its own place in the answer."""

from __future__ import annotations

from collections.abc import Sequence

from spanlab.labels import Extent
from spanlab.mappers.places import Mapped, MappedSpan, Quote, QuoteMapping

FLOOR = 0.85


def map_quotes(answer: str, quotes: Sequence[Quote], *, floor: float = FLOOR) -> QuoteMapping:
    """Find the place in ``answer`` of every quote.

    Args:
        answer: the text as it is; offsets are code points of it.
        quotes: in the order in which the model gave them. A quote without ``prob`` counts 1.0.
        floor: how alike a quote and its place must be, in [0, 1]; 1.0 accepts only quotes that
            stand there word for word.

    Returns:
        The places found, and the quotes that were not; empty for no quotes.
    """
    mapped: list[Mapped] = []
    unmatched: list[int] = []
    position = 0
    for index, quote in enumerate(quotes):
        start = answer.find(quote.text, position) if quote.text else -1
        if start < 0 and quote.text:
            start = answer.find(quote.text)
        if start < 0:
            unmatched.append(index)
            continue
        position = start + len(quote.text)
        mapped.append(Mapped(index, (Extent(start, position),), 1.0))
    spans = [
        MappedSpan(
            start, end, 1.0 if (prob := quotes[found.quote].prob) is None else prob, found.quote
        )
        for found in mapped
        for start, end in found.places
    ]
    return QuoteMapping(tuple(mapped), tuple(sorted(spans)), tuple(unmatched))

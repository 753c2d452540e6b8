"""Substring mapper: every quote of a model to its own place in the answer.

Huang et al. (2025), "UCSC at SemEval-2025 Task 3", let a model quote what is hallucinated and look
the quotes up. Looking up the first occurrence puts a repeated word in the wrong place; here all
quotes are placed together (``assignment``), after every place of each is known (``occurrences``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanlab.mappers.assignment import assign
from spanlab.mappers.occurrences import Finder
from spanlab.mappers.places import Mapped, MappedSpan, Quote, QuoteMapping

FLOOR: Final = 0.85


def map_quotes(answer: str, quotes: Sequence[Quote], *, floor: float = FLOOR) -> QuoteMapping:
    """Find the place in ``answer`` of every quote.

    A place is used once: a quote given more often than it occurs is a duplicate. Quotes may
    overlap only if their words differ (one inside the other, or sharing a word at an edge). A
    quote that stands more than once goes where its words ``before`` stand before it, if it has any.

    Args:
        answer: the text as it is; offsets are code points of it.
        quotes: in the order in which the model gave them. A quote without ``prob`` counts 1.0.
        floor: how alike a quote and its place must be, in [0, 1]; ``Finder.find`` lists the
            scores. 1.0 accepts only quotes that are there word for word.

    Returns:
        The places found, and the quotes that were not; empty for no quotes.
    """
    finder = Finder(answer, floor)
    found = [finder.find(quote.text) for quote in quotes]
    places = assign(
        [
            finder.preceded(occurrences.places, quote.before)
            for occurrences, quote in zip(found, quotes, strict=True)
        ]
    )
    mapped = tuple(
        Mapped(index, (place,), found[index].score)
        for index, place in enumerate(places)
        if place is not None
    )
    missing = [index for index, place in enumerate(places) if place is None]
    return QuoteMapping(
        mapped,
        spans_of(mapped, quotes),
        unmatched=tuple(index for index in missing if not found[index].places),
        duplicates=tuple(index for index in missing if found[index].places),
    )


def spans_of(mapped: Sequence[Mapped], quotes: Sequence[Quote]) -> tuple[MappedSpan, ...]:
    """Return the places of quotes as spans with the quotes' probabilities, sorted by place."""
    return tuple(
        sorted(
            MappedSpan(start, end, 1.0 if prob is None else prob, found.quote)
            for found in mapped
            for prob in (quotes[found.quote].prob,)
            for start, end in found.places
        )
    )

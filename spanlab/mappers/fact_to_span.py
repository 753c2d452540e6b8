"""Fact-to-span mapper: the words of the answer that state a fact."""

from __future__ import annotations

from collections.abc import Sequence

from spanlab.mappers.places import Quote, QuoteMapping
from spanlab.mappers.substring import FLOOR, map_quotes


def map_fact(
    answer: str,
    source: str | None,
    words: Sequence[Quote],
    *,
    lang: str,
    floor: float = FLOOR,
) -> QuoteMapping:
    """Find the ``words`` that state a fact inside the sentence of the answer it came from.

    Args:
        answer: the text as it is; offsets are code points of it.
        source: the sentence of the answer that states the fact, as a model quoted it; None if
            it is not known.
        words: the words that state what is false, as a model quoted them.
        lang: BCP 47 tag of the answer.
        floor: how alike a quote and its place must be, in [0, 1].

    Returns:
        The places found, and the quotes that were not; empty for no quotes.
    """
    return map_quotes(answer, words, floor=floor)

"""Fact-to-span mapper: the words of the answer that state a fact.

In the knowledge-graph detector of Huang et al. (2025), "UCSC at SemEval-2025 Task 3", a model
names the words of the answer that state a fact found false. Here they are looked for inside the
sentence that the fact came from, so that the same words elsewhere stay unmarked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rapidfuzz.distance import LCSseq

from spanlab.labels import Extent
from spanlab.mappers.folding import fold
from spanlab.mappers.places import Mapped, Quote, QuoteMapping
from spanlab.mappers.substring import FLOOR, map_quotes, spans_of
from spanlab.mappers.tokens import tokens

_SHARE: Final = 0.6  # of a quote's letters that must stand in the sentence, in order


def map_fact(
    answer: str,
    source: str | None,
    words: Sequence[Quote],
    *,
    lang: str,
    floor: float = FLOOR,
) -> QuoteMapping:
    """Find the ``words`` that state a fact inside the sentence of the answer it came from.

    Words that do not stand there as a quote are aligned with the sentence: those of them that
    stand there in the same order are marked, if they make up most of the quote.

    Args:
        answer: the text as it is; offsets are code points of it.
        source: the sentence of the answer that states the fact, as a model quoted it; None if
            it is not known. If it stands nowhere, the whole answer is searched for quotes.
        words: the words that state what is false, as a model quoted them.
        lang: BCP 47 tag of the answer.
        floor: how alike a quote and its place must be, in [0, 1].

    Returns:
        The places found, several where other words lie between, and the quotes that were not
        found; empty for no quotes.
    """
    found = map_quotes(answer, [Quote(source)], floor=floor).mapped if source else ()
    if not found:
        return map_quotes(answer, words, floor=floor)
    sentence = found[0].places[0]
    inside = answer[sentence.start : sentence.end]
    quoted = map_quotes(inside, words, floor=floor)
    mapped = list(quoted.mapped)
    unmatched: list[int] = []
    for index in quoted.unmatched:
        aligned = _aligned(inside, words[index].text, lang)
        if aligned is not None and floor < 1.0:
            mapped.append(aligned._replace(quote=index))
        else:
            unmatched.append(index)
    moved = tuple(sorted(_moved(one, sentence.start) for one in mapped))
    return QuoteMapping(moved, spans_of(moved, words), tuple(unmatched), quoted.duplicates)


def _aligned(sentence: str, quote: str, lang: str) -> Mapped | None:
    """Mark the words of ``quote`` that ``sentence`` has in the same order."""
    here, there = tokens(sentence, lang), tokens(quote, lang)
    ours = [fold(sentence[start:end]).words for start, end in here]
    theirs = [fold(quote[start:end]).words for start, end in there]
    letters = sum(len(word) for word in theirs)
    shared = [block for block in LCSseq.opcodes(ours, theirs) if block.tag == "equal"]
    kept = sum(len(ours[i]) for block in shared for i in range(block.src_start, block.src_end))
    if not letters or kept < _SHARE * letters:
        return None
    places = tuple(
        Extent(here[block.src_start].start, here[block.src_end - 1].end)
        for block in shared
        if any(ours[block.src_start : block.src_end])
    )
    return Mapped(0, places, min(kept / letters, FLOOR))


def _moved(found: Mapped, by: int) -> Mapped:
    places = tuple(Extent(start + by, end + by) for start, end in found.places)
    return found._replace(places=places)

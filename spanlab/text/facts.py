"""The words that state a fact, and the sentence of a passage that is closest to a text.

In the knowledge-graph detector of Huang et al. (2025), "UCSC at SemEval-2025 Task 3", a model
names the words of the answer that state a fact found false. Here they are looked for inside the
sentence that the fact came from, so that the same words elsewhere stay unmarked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process
from rapidfuzz.distance import LCSseq

from spanlab.text.extents import Extent
from spanlab.text.quotes import (
    FLOOR,
    MappedQuote,
    ModelQuote,
    QuoteMapping,
    map_quotes,
    spans_of,
)
from spanlab.text.terms import UNSPACED, fold
from spanlab.text.tokens import sentences, tokens

_RETOLD: Final = 0.75  # score from which the closest sentence counts as the source
_SHARE: Final = 0.6  # of a quote's letters that must stand in the sentence, in order


def map_fact(
    answer: str,
    source: str | None,
    words: Sequence[ModelQuote],
    *,
    lang: str,
    floor: float = FLOOR,
) -> QuoteMapping:
    """Find the ``words`` that state a fact inside the sentence of the answer it came from.

    Words that are not found there as a quote are aligned with the sentence: those of them that
    it has in the same order are marked, if they make up 0.6 of the quote's letters (their
    score is at most 0.85).

    Args:
        answer: the text as it is; offsets are code points of it.
        source: the sentence of the answer that states the fact, as a model quoted it; None if
            it is not known. A part of it, or the same in slightly other words, will do. If it
            is not found, the whole answer is searched for quotes.
        words: the words that state what is false, as a model quoted them.
        lang: BCP 47 tag of the answer.
        floor: how alike a quote and its place must be, in [0, 1]; 1.0 also rules out alignment.

    Returns:
        The places found, several where other words lie between, and the quotes that were not
        found; empty for no quotes.
    """
    place = _source(answer, source, lang, floor) if source else None
    if place is None:
        return map_quotes(answer, words, floor=floor)
    mapped, left, duplicates = _quoted(answer, place, words, range(len(words)), floor)
    around = _sentence_around(answer, place, lang) if left else place
    if around != place:
        more, left, again = _quoted(answer, around, words, left, floor)
        mapped, duplicates = mapped + more, duplicates + again
    unmatched: list[int] = []
    for index in left:
        aligned = _aligned(answer[slice(*around)], words[index].text, lang)
        if aligned is not None and floor < 1.0:
            mapped.append(_moved(aligned, index, around.start))
        else:
            unmatched.append(index)
    in_order = tuple(sorted(mapped))
    return QuoteMapping(
        in_order, spans_of(in_order, words), tuple(unmatched), tuple(sorted(duplicates))
    )


def _source(answer: str, source: str, lang: str, floor: float) -> Extent | None:
    """Return the place of the sentence of a fact, quoted or retold in much the same words."""
    mapped = map_quotes(answer, [ModelQuote(source)], floor=floor).mapped
    if mapped:
        return mapped[0].places[0]
    near = closest_sentence([answer], source, lang=lang) if floor < 1.0 else None
    return Extent(near.start, near.end) if near is not None and near.score >= _RETOLD else None


def _sentence_around(answer: str, place: Extent, lang: str) -> Extent:
    """Widen a place to the sentences that it touches."""
    touched = [s for s in sentences(answer, lang) if s.start < place.end and s.end > place.start]
    return Extent(min(touched[0].start, place.start), max(touched[-1].end, place.end))


def _quoted(
    answer: str, scope: Extent, words: Sequence[ModelQuote], which: Sequence[int], floor: float
) -> tuple[list[MappedQuote], list[int], list[int]]:
    """Map some of the words inside ``scope``: those found, those not, and duplicates."""
    mapping = map_quotes(answer[slice(*scope)], [words[index] for index in which], floor=floor)
    return (
        [_moved(mapped, which[mapped.quote], scope.start) for mapped in mapping.mapped],
        [which[index] for index in mapping.unmatched],
        [which[index] for index in mapping.duplicates],
    )


def _aligned(sentence: str, quote: str, lang: str) -> MappedQuote | None:
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
    return MappedQuote(0, places, min(kept / letters, FLOOR))


def _moved(mapped: MappedQuote, quote: int, by: int) -> MappedQuote:
    places = tuple(Extent(start + by, end + by) for start, end in mapped.places)
    return MappedQuote(quote, places, mapped.score)


class ClosestSentence(NamedTuple):
    """Characters ``[start, end)`` of passage number ``passage`` (0-based); ``score`` in [0, 1]."""

    passage: int
    start: int
    end: int
    score: float


class _Sentence(NamedTuple):
    place: Extent
    words: str  # folded, with one space between


def closest_sentence(
    passages: Sequence[str], text: str, *, lang: str = "und"
) -> ClosestSentence | None:
    """Return the sentence of ``passages`` that comes closest to ``text``.

    Words count whatever their order: half for being shared at all, half for how much else there
    is, so that a sentence of one shared word does not win. A sentence that holds the whole text
    has score 1.0. ``lang`` is the BCP 47 tag of the passages, whose sentences are cached.

    Returns:
        The best sentence, the first of equals; None if there is no sentence, no word in ``text``
        or none shared.
    """
    wanted = _words(text)
    if not wanted:
        return None
    read = [
        (index, sentence)
        for index, passage in enumerate(passages)
        for sentence in _read(passage, lang)
    ]
    alike = process.extract(
        wanted, [sentence.words for _, sentence in read], scorer=fuzz.token_set_ratio, limit=None
    )
    best, where = 0.0, -1
    for words, shared, number in alike:  # those that share most come first
        if shared / 200 + 0.5 < best:
            break
        score = 1.0
        if f" {wanted} " not in f" {words} ":
            score = min(shared / 200 + fuzz.token_sort_ratio(wanted, words) / 200, 0.99)
        if score > best or (score == best > 0.0 and number < where):
            best, where = score, number
    if where < 0:
        return None
    index, (place, _) = read[where]
    return ClosestSentence(index, place.start, place.end, best)


@lru_cache(maxsize=512)
def _read(passage: str, lang: str) -> tuple[_Sentence, ...]:
    places = sentences(passage, lang)
    if passage.isascii():  # each character stays one: to fold them all at once is quicker
        plain = passage.lower().translate(_PLAIN)
        return tuple(
            _Sentence(place, " ".join(plain[place.start : place.end].split())) for place in places
        )
    return tuple(_Sentence(place, _words(passage[place.start : place.end])) for place in places)


class _PunctuationTable(dict[int, str]):
    """A translation table that is filled as characters occur: punctuation parts words."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if _SINGLE.match(character):
            plain = f" {character} "
        elif unicodedata.category(character).startswith("M"):
            plain = ""
        else:
            plain = character if character.isalnum() else " "
        self[code] = plain
        return plain


_SINGLE: Final = re.compile(f"[{UNSPACED}]")
_PLAIN: Final = _PunctuationTable()


def _words(text: str) -> str:
    """Return the words of a text for comparing; spaCy's rules would cost ten times as much."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_PLAIN).split())

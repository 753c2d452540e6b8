"""The sentence of some passages that comes closest to a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process

from spanlab.labels import Extent
from spanlab.mappers.scripts import UNSPACED
from spanlab.mappers.tokens import sentences


class Closest(NamedTuple):
    """Characters ``[start, end)`` of passage number ``passage`` (0-based); ``score`` in [0, 1]."""

    passage: int
    start: int
    end: int
    score: float


class _Sentence(NamedTuple):
    place: Extent
    words: str  # folded, with one space between


def closest_sentence(passages: Sequence[str], text: str, *, lang: str = "und") -> Closest | None:
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
        (index, each) for index, passage in enumerate(passages) for each in _read(passage, lang)
    ]
    alike = process.extract(
        wanted, [each.words for _, each in read], scorer=fuzz.token_set_ratio, limit=None
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
    return Closest(index, place.start, place.end, best)


@lru_cache(maxsize=512)
def _read(passage: str, lang: str) -> tuple[_Sentence, ...]:
    places = sentences(passage, lang)
    if passage.isascii():  # each character stays one: to fold them all at once is quicker
        plain = passage.lower().translate(_PLAIN)
        return tuple(
            _Sentence(each, " ".join(plain[each.start : each.end].split())) for each in places
        )
    return tuple(_Sentence(each, _words(passage[each.start : each.end])) for each in places)


class _Plain(dict[int, str]):
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
_PLAIN: Final = _Plain()


def _words(text: str) -> str:
    """Return the words of a text for comparing; spaCy's rules would cost ten times as much."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_PLAIN).split())

"""What a text is searched by: words, and pieces of words where writing has no spaces.

Both the texts and the queries go through here, so that they meet whatever their script, case,
width and accents. ``terms`` is for ranking passages, ``beginnings`` and ``sought`` for finding the
items that a person looks for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain

_LENGTH = 3  # characters of a term of ``beginnings`` without spaces
STEM = 5  # characters: cutting words there stems about as well as rules do, in any alphabet

# Accents, vowel points and joiners; the vowel signs of Indic and South-East Asian scripts stay.
_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640\u200b-\u200d\u00ad]+"
)
_ASCII = re.compile("[a-z0-9]+")
_HAN_KANA_HANGUL = (
    "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u1100-\u11ff\uac00-\ud7af"
)
_THAI_LAO_BURMESE_KHMER = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_WIDE = re.compile(f"[{_HAN_KANA_HANGUL}]+")
_UNSPACED = re.compile(f"[{_THAI_LAO_BURMESE_KHMER}]+")


def terms(text: str, *, stems: bool = False) -> list[str]:
    """Return the terms of a text, as often as they stand in it.

    Words are casefolded and lose their accents. Chinese, Japanese and Korean become characters and
    pairs of neighbours; Thai, Lao, Burmese and Khmer pairs and triples.

    Args:
        text: any text.
        stems: whether words also give their first characters as a term, so that forms of a word
            meet.

    Returns:
        The terms; none for a text without letters and digits.
    """
    folded = _folded(text)
    found = (_ASCII if folded.isascii() else _words()).findall(folded)
    if stems:
        found += [word[:STEM] + "*" for word in found if len(word) > STEM]
    if not folded.isascii():
        for run in _WIDE.findall(folded):
            found.extend(chain(run, _grams(run, 2)))
        for run in _UNSPACED.findall(folded):
            found.extend(chain(_grams(run, 2), _grams(run, 3)) if len(run) > 1 else [run])
    return found


def beginnings(text: str) -> set[str]:
    """Return the terms under which a text is found by what ``sought`` makes of a search.

    They are its words and, where writing has no spaces, the three characters from each character
    on (fewer at the end). Every part of such writing is then the beginning of a term, or of some.
    """
    folded = _folded(text)
    found = set((_ASCII if folded.isascii() else _words()).findall(folded))
    for run in _unspaced(folded):
        found.update(run[at : at + _LENGTH] for at in range(len(run)))
    return found


def sought(text: str) -> list[str]:
    """Return what the terms of a text must begin with to be found by the search ``text``.

    All must occur: "330 met" finds what has "330" and "metres", and 東京都 what has these
    characters in this order. Four characters and more without spaces are looked for by threes.

    Returns:
        The beginnings, each once; none for a search without letters and digits.
    """
    folded = _folded(text)
    found = (_ASCII if folded.isascii() else _words()).findall(folded)
    for run in _unspaced(folded):
        found += _grams(run, _LENGTH) if len(run) > _LENGTH else [run]
    return list(dict.fromkeys(found))


def _unspaced(folded: str) -> Iterator[str]:
    if not folded.isascii():
        yield from _WIDE.findall(folded)
        yield from _UNSPACED.findall(folded)


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", bare.casefold())


def _grams(run: str, size: int) -> Iterator[str]:
    return (run[at : at + size] for at in range(len(run) - size + 1))


@cache
def _words() -> re.Pattern[str]:
    # \w knows no vowel signs, without which a word of Hindi falls into pieces.
    signs = "".join(
        chr(code)
        for code in range(0x0900, 0x0E00)
        if unicodedata.category(chr(code)).startswith("M")
    )
    letter = f"[^\\W_{_HAN_KANA_HANGUL}{_THAI_LAO_BURMESE_KHMER}]"
    return re.compile(f"{letter}+(?:[{signs}]+{letter}*)*")

"""What a text is searched by: words, and pieces of words where writing has no spaces.

Both the corpus and the queries go through here, so that they meet whatever their script, case,
width and accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain

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

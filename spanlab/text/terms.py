"""Text folded for comparison: terms to search by, scripts, and signs that are joined to others.

Both the texts and the queries go through here, so that they meet whatever their script, case,
width and accents. ``terms`` is for ranking passages, ``beginnings`` and ``sought`` for finding the
items that a person looks for.

Letter case, compatibility forms (full-width letters, ligatures), quotation marks, dashes and
whitespace are made one. Lengths change on the way (ß becomes ss, ﬁ becomes fi, a letter and its
accent become one), so every folded character knows the characters of the text that it came from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Final

from spanlab.text.extents import Extent

_LENGTH = 3  # characters of a term of ``beginnings`` without spaces
STEM = 5  # characters: cutting words there stems about as well as rules do, in any alphabet

# Accents, vowel points and joiners; the vowel signs of Indic and South-East Asian scripts stay.
_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640\u200b-\u200d\u00ad]+"
)

_ASCII = re.compile("[a-z0-9]+")

# Of each byte of ASCII the small letter or digit that it is, else a space.
_ASCII_WORDS = bytes(
    ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else 32 for code in range(256)
)

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
    words = (_ASCII if folded.isascii() else _words()).findall(folded)
    if stems:
        words += [word[:STEM] + "*" for word in words if len(word) > STEM]
    if not folded.isascii():
        for run in _WIDE.findall(folded):
            words.extend(chain(run, _grams(run, 2)))
        for run in _UNSPACED.findall(folded):
            words.extend(chain(_grams(run, 2), _grams(run, 3)) if len(run) > 1 else [run])
    return words


def beginnings(text: str) -> set[str]:
    """Return the terms under which a text is found by what ``sought`` makes of a search.

    They are its words and, where writing has no spaces, the three characters from each character
    on (fewer at the end). Every part of such writing is then the beginning of a term, or of some.
    """
    if text.isascii():  # as below, at half the cost: an import does this with every answer
        return set(text.encode().translate(_ASCII_WORDS).decode().split())
    folded = _folded(text)
    words = set((_ASCII if folded.isascii() else _words()).findall(folded))
    for run in _unspaced(folded):
        words.update(run[at : at + _LENGTH] for at in range(len(run)))
    return words


def sought(text: str) -> list[str]:
    """Return what the terms of a text must begin with to be found by the search ``text``.

    All must occur: "330 met" finds what has "330" and "metres", and 東京都 what has these
    characters in this order. Four characters and more without spaces are looked for by threes.

    Returns:
        The beginnings, each once; none for a search without letters and digits.
    """
    folded = _folded(text)
    grams = (_ASCII if folded.isascii() else _words()).findall(folded)
    for run in _unspaced(folded):
        grams += _grams(run, _LENGTH) if len(run) > _LENGTH else [run]
    return list(dict.fromkeys(grams))


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


_ALIKE: Final = str.maketrans(
    {
        **dict.fromkeys('"“”„‟«»″＂「」『』❝❞‘’‚‛‹›′＇`´ʼʹ', "'"),
        **dict.fromkeys("‐‑‒–—―−﹘﹣－⁃", "-"),
        **dict.fromkeys("…", "..."),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f", ""),
    }
)


@dataclass(frozen=True)
class FoldedText:
    """Folded text; ``starts[i]`` and ``ends[i]`` bound the origin of its character ``i``."""

    text: str
    starts: tuple[int, ...] | range
    ends: tuple[int, ...] | range

    @property
    def words(self) -> str:
        """Letters and digits alone."""
        return "".join(c for c in self.text if c.isalnum())

    def origin(self, start: int, end: int) -> Extent:
        """Return where the folded characters ``[start, end)`` came from; ``start < end``."""
        return Extent(self.starts[start], self.ends[end - 1])

    def parts_at(self, at: int) -> bool:
        """Return whether a cut before folded character ``at`` is one in the text too (not in ß)."""
        return not 0 < at < len(self.text) or self.starts[at] >= self.ends[at - 1]


def fold(text: str) -> FoldedText:
    """Return ``text`` folded for comparison."""
    if (
        text.isascii()
        and "  " not in text
        and not any(c in text for c in '\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"`')
    ):
        return FoldedText(text.lower(), range(len(text)), range(1, len(text) + 1))
    marks = dependents(text)
    folded: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position, size = 0, len(text)
    while position < size:
        end = position + 1
        while end < size and text[end] in marks:
            end += 1
        piece = _fold(text[position:end])
        if piece == " " and folded and folded[-1] == " ":
            ends[-1] = end
        else:
            folded.append(piece)
            starts += [position] * len(piece)
            ends += [end] * len(piece)
        position = end
    return FoldedText("".join(folded), tuple(starts), tuple(ends))


@lru_cache(maxsize=16_384)
def _fold(cluster: str) -> str:
    """Fold one letter with its marks."""
    alike = cluster.translate(_ALIKE)
    folded = unicodedata.normalize("NFKC", alike).casefold()
    folded = unicodedata.normalize("NFKC", folded).translate(_ALIKE)
    return " " if folded.isspace() else folded


def skeleton(folded: FoldedText) -> FoldedText:
    """Return the letters and digits of ``folded`` alone; a point between digits stays."""
    text = folded.text
    marks = dependents(text)

    def is_point(at: int) -> bool:
        return text[at - 1 : at].isdecimal() and text[at + 1 : at + 2].isdecimal()

    kept = [
        index
        for index, c in enumerate(text)
        if c.isalnum() or c in marks or (c in ".," and is_point(index))
    ]
    return FoldedText(
        "".join([text[index] for index in kept]),
        tuple([folded.starts[index] for index in kept]),
        tuple([folded.ends[index] for index in kept]),
    )


# Han with its radicals and extensions, kana, bopomofo, Thai, Lao, Tibetan, Burmese, Khmer,
# Tai and Javanese scripts: writing in which a space does not part words.
UNSPACED: Final = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf"
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua980-\ua9df\ua9e0-\ua9ff\uaa60-\uaadf\uf900-\ufaff\uff66-\uff9f"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)

_JOINER: Final = "\u200d"

_MODIFIERS: Final = frozenset(
    "\ufe0e\ufe0f\u200d\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
)

_FLAGS: Final = frozenset(map(chr, range(0x1F1E6, 0x1F200)))  # two of them make a flag
_TAGS: Final = frozenset(map(chr, range(0xE0020, 0xE0080)))


def dependents(text: str) -> frozenset[str]:
    """Return the characters of ``text`` that never stand alone: marks, joiners, modifiers."""
    return frozenset(
        c
        for c in set(text)
        if c in _MODIFIERS or c in _TAGS or unicodedata.category(c).startswith("M")
    )


def whole(text: str, extents: Sequence[Extent]) -> list[Extent]:
    """Join touching ``extents`` (in order, without overlap) that cut through one visible character.

    A combining mark stays with its letter, an emoji with its skin tone and with what a zero-width
    joiner ties to it, and the two letters of a flag stay together.
    """
    if text.isascii():
        return list(extents)
    marks = dependents(text)
    joined: list[Extent] = []
    flags = 0  # letters of flags at the end of the last extent
    for start, end in extents:
        flag = text[start] in _FLAGS
        if joined and joined[-1].end == start:
            tied = text[start] in marks or text[start - 1] == _JOINER or (flag and flags % 2 == 1)
            if tied:
                joined[-1] = Extent(joined[-1].start, end)
                flags += flag
                continue
        joined.append(Extent(start, end))
        flags = int(flag)
    return joined


_WORD: Final = re.compile(rf"[{UNSPACED}]+|[^\W\d_{UNSPACED}]+")
# Of the answers of data/citations.jsonl with passages of their own language at least .22 of their
# small words are there, with passages of another at most .13.
_SHARED: Final = 0.15
_FEWEST: Final = 8  # small words of a text, from which on it can be told
_FEWEST_THERE: Final = 60  # of others; in fewer a text of their language may find one alone


def share_language(text: str, others: Sequence[str]) -> bool:
    """Say whether a text shares the small words of others, as texts of a language do.

    True also where it is too short to tell.
    """
    small, there = _small_words(text), set[str]().union(*map(_small_words, others))
    needed = _SHARED * len(small) if len(there) >= _FEWEST_THERE else 1
    return len(small) < _FEWEST or len(small & there) >= needed


def _small_words(text: str) -> set[str]:
    """Return the words without a capital letter or digit, which are no names."""
    return set(terms(" ".join(word for word in _WORD.findall(text) if word == word.lower())))

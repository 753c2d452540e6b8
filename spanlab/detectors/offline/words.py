"""A text cut into words and sentences, with offsets into the text as it is.

spaCy's blank tokeniser of the language says where a run of letters falls apart (``l'homme``,
``don't``) and where sentences end. Numbers and scripts without spaces are cut by one pattern for
all languages, because those tokenisers leave ``2018年，他获得了`` in one piece or tear ``2018``
into digits.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from spanlab.detectors.offline.blank import UNSPACED, readable, stop_words, tokens
from spanlab.detectors.offline.normal import fold

_DATE = r"(?P<one>\d{1,2})(?P<dot>[./-])(?P<two>\d{1,2})(?P=dot)(?P<year>\d{4})(?![.,]?\d)"
_ISO_DATE = r"(?P<first>\d{4})-(?P<middle>\d{2})-(?P<last>\d{2})(?!\d)"
_GROUPED = r"\d{1,3}(?P<gap>[.,'’٬ \u00a0\u202f])\d{3}(?:(?P=gap)\d{3}){0,4}(?!\d)(?:[.,٫]\d+)?"
_DECIMAL = r"(?!\d{4}[.,]\d{4})\d+[.,٫]\d+(?![.,]?\d)"
# The commonest grammar of Chinese, and Hiragana: signs that say little by themselves. Chinese stop
# words are no help here, they are parts of too many names (上 of 上海).
_PARTICLES = frozenset("的了着過过之其也都就而并與与及或但是在于於和") | {
    chr(code) for code in range(0x3041, 0x30A0)
}


class Kind(StrEnum):
    """What sort of word it is, which decides how it is compared."""

    LETTERS = "letters"
    NUMBER = "number"
    SIGN = "sign"  # one character, with its marks, of a script written without spaces


class Word(NamedTuple):
    """Characters ``[start, end)`` of a text.

    A ``function`` word says little by itself: a stop word, a particle, or the month in a date of
    digits, which the passages may well have by its name.
    """

    start: int
    end: int
    text: str
    kind: Kind
    function: bool
    sentence: int


@dataclass(frozen=True)
class Reading:
    """A text with its words and the ``(start, end)`` of its sentences, both in order."""

    text: str
    words: tuple[Word, ...]
    sentences: tuple[tuple[int, int], ...]


class _Piece(NamedTuple):
    start: int
    end: int
    kind: Kind
    month: bool = False


def read(text: str, lang: str) -> Reading:
    """Cut ``text`` into words and sentences.

    Args:
        text: any text; it is not normalised, offsets count its code points.
        lang: language code such as ``zh`` or ``pt-BR``; one that spaCy does not know, or only
            with further packages, is read with the rules common to all languages.

    Returns:
        Words and sentences; no words where the text holds only spaces and punctuation.
    """
    code = readable(lang, text)
    found = tokens(text, code)
    sentences = tuple(_sentences(text, found.ends))
    begins = [start for start, _ in sentences]
    stops = stop_words(code)
    words = []
    for piece in _pieces(text, found.cuts):
        word = text[piece.start : piece.end]
        function = piece.month or _is_function(word, piece.kind, stops)
        sentence = bisect_right(begins, piece.start) - 1
        words.append(Word(piece.start, piece.end, word, piece.kind, function, sentence))
    return Reading(text, tuple(words), sentences)


def _is_function(word: str, kind: Kind, stops: frozenset[str]) -> bool:
    if kind is Kind.LETTERS:
        leftover = len(word) == 1 and word.lower() != word.upper()  # of an apostrophe
        return leftover or fold(word) in stops
    return kind is Kind.SIGN and word in _PARTICLES


def _sentences(text: str, ends: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield sentences without the spaces around them; a line break ends one as well."""
    breaks = {found.start() for found in re.finditer(r"[\n\r]+", text)} | {len(text)}
    years = {found.end() for found in re.finditer(r"\d{4}\.(?=\s)", text)}  # one token in German
    start = 0
    for end in sorted({*ends, *years, *breaks}):
        piece = text[start:end]
        if end not in breaks and _goes_on(text, piece, end):
            continue
        if piece.strip():
            yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        start = end


def _goes_on(text: str, piece: str, end: int) -> bool:
    """Say whether a supposed end is inside ``3.5`` or after a bare ordinal such as ``1.``."""
    return (piece.endswith(".") and text[end].isalnum()) or not re.search(r"[^\W\d_]", piece)


def _pieces(text: str, cuts: frozenset[int]) -> Iterator[_Piece]:
    for found in _word_pattern().finditer(text):
        start, end = found.span()
        match found.lastgroup:
            case "year" | "last":
                yield from _date(found)
            case "number":
                yield _Piece(start, end, Kind.NUMBER)
            case "sign":
                yield _Piece(start, end, Kind.SIGN)
            case _:
                inner = [place for place in range(start + 1, end) if place in cuts]
                for left, right in zip([start, *inner], [*inner, end], strict=True):
                    yield _Piece(left, right, Kind.LETTERS)


def _date(found: re.Match[str]) -> Iterator[_Piece]:
    """Yield day, month and year; the month stands second unless that number is too large."""
    if found.lastgroup == "last":
        parts, month = ("first", "middle", "last"), "middle"
    else:
        parts, month = ("one", "two", "year"), "one" if int(found["two"]) > 12 else "two"
    for part in parts:
        yield _Piece(*found.span(part), Kind.NUMBER, part == month)


@lru_cache(maxsize=1)
def _word_pattern() -> re.Pattern[str]:
    """Match dates, numbers, signs of unspaced scripts and runs of letters, each with its marks."""
    marks = _marks()
    letter = rf"(?:(?![{UNSPACED}])[^\W\d_])"
    joined = rf"[{marks}\u200c\u200d]+(?=[^\W\d_]|[{marks}])"
    return re.compile(
        rf"{_DATE}|{_ISO_DATE}|(?P<number>{_GROUPED}|{_DECIMAL}|\d+)"
        rf"|(?P<sign>[{UNSPACED}][{marks}]*)"
        rf"|(?P<letters>{letter}(?:{letter}|{joined}|[{marks}])*)"
    )


def _marks() -> str:
    """List the combining marks for a character class; Python's own classes leave them out."""
    marks = [c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M"]
    return re.escape("".join(marks))

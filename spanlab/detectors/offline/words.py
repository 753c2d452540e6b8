"""A text cut into words and sentences, with offsets into the text as it is.

spaCy's blank tokeniser of the language says where a run of letters falls apart (``l'homme``,
``don't``) and where sentences end, and brings its stop words. Numbers and scripts without spaces
are cut by one pattern for all languages, because those tokenisers leave ``2018年，他获得了`` in one
piece or tear ``2018`` into digits.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from spanlab.detectors.offline.normal import fold

if TYPE_CHECKING:
    from spacy.language import Language

# spaCy keeps every string it has ever seen; past this many it is built anew, so that a run over
# millions of items stays in bounded memory.
_VOCABULARY_LIMIT = 400_000
# spaCy's tokeniser takes quadratic time on a run without spaces ("((((…" of 20,000: 30 s). For
# spaCy alone, every 60th character of such a run is replaced by a space.
_LONG_RUN = re.compile(r"\S{59}\S(?=\S)")
_BLOCK = 10_000  # characters per call: parts of spaCy take quadratic time on longer texts too
# A text with this share of characters from scripts without spaces is read sign by sign.
_UNSPACED_SHARE = 0.3

# Thai, Lao, Myanmar, Khmer, Kana, Han.
_UNSPACED = (
    "\u0e01-\u0e46\u0e81-\u0edf\u1000-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_DATE = r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?![.,]?\d)"
_GROUPED = r"\d{1,3}(?P<gap>[.,'’٬ \u00a0\u202f])\d{3}(?:(?P=gap)\d{3}){0,4}(?!\d)(?:[.,٫]\d+)?"
_DECIMAL = r"(?!\d{4}[.,]\d{4})\d+[.,٫]\d+(?![.,]?\d)"
_HIRAGANA = ("\u3041", "\u309f")


class Kind(StrEnum):
    """What sort of word it is, which decides how it is compared."""

    LETTERS = "letters"
    NUMBER = "number"
    SIGN = "sign"  # one character, with its marks, of a script written without spaces


class Word(NamedTuple):
    """Characters ``[start, end)`` of a text; a ``function`` word says little by itself."""

    start: int
    end: int
    text: str
    kind: Kind
    function: bool
    sentence: int


class _Tokens(NamedTuple):
    """Places where words fall apart, and where sentences end."""

    cuts: frozenset[int]
    ends: frozenset[int]


@dataclass(frozen=True)
class Reading:
    """A text with its words and the ``(start, end)`` of its sentences, both in order."""

    text: str
    words: tuple[Word, ...]
    sentences: tuple[tuple[int, int], ...]


def read(text: str, lang: str) -> Reading:
    """Cut ``text`` into words and sentences.

    Args:
        text: any text; it is not normalised, offsets count its code points.
        lang: language code such as ``zh`` or ``pt-BR``; one that spaCy does not know, or only
            with further packages, is read with the rules common to all languages.

    Returns:
        Words and sentences; no words where the text holds only spaces and punctuation.
    """
    code = _readable(lang.split("-", maxsplit=1)[0], text)
    tokens = _tokens(text, code)
    sentences = tuple(_sentences(text, tokens.ends))
    begins = [start for start, _ in sentences]
    stops = _stop_words(code)
    words = []
    for start, end, kind in _pieces(text, tokens.cuts):
        piece = text[start:end]
        function = kind is not Kind.NUMBER and _is_function(piece, stops)
        sentence = max(0, bisect_right(begins, start) - 1)
        words.append(Word(start, end, piece, kind, function, sentence))
    return Reading(text, tuple(words), sentences)


def _readable(code: str, text: str) -> str:
    """Return ``code`` if spaCy reads it here, else the character or the common tokeniser's."""
    if _blank(code) is not None:
        return code
    unspaced = sum(len(run) for run in _unspaced_runs().findall(text[:2000]))
    return "zh" if unspaced > _UNSPACED_SHARE * len(text[:2000]) else "xx"


def _nlp(code: str) -> Language:
    nlp = _blank(code)
    if nlp is not None and len(nlp.vocab) > _VOCABULARY_LIMIT:
        _blank.cache_clear()
        nlp = _blank(code)
    assert nlp is not None, f"spaCy reads {code!r}, as _readable has found"
    return nlp


@lru_cache(maxsize=32)
def _blank(code: str) -> Language | None:
    try:
        nlp: Language = import_module("spacy").blank(code)
    except ImportError:  # unknown to spaCy, or known only with a package that is not installed
        return None
    nlp.max_length = sys.maxsize
    nlp.add_pipe("sentencizer")
    return nlp


@lru_cache(maxsize=32)
def _stop_words(code: str) -> frozenset[str]:
    """Return the language's stop words, folded, without its words for numbers."""
    nlp = _nlp(code)
    words = (word for word in nlp.Defaults.stop_words if not nlp.vocab[word].like_num)
    return frozenset(fold(word) for word in words if not _is_numeral(word))


def _is_numeral(word: str) -> bool:
    return len(word) == 1 and unicodedata.numeric(word, None) is not None


def _is_function(piece: str, stops: frozenset[str]) -> bool:
    if fold(piece) in stops or _HIRAGANA[0] <= piece[0] <= _HIRAGANA[1]:
        return True
    return len(piece) == 1 and piece.lower() != piece.upper()  # what an apostrophe left over


def _tokens(text: str, code: str) -> _Tokens:
    """Ask spaCy where words fall apart, but not between single characters (Chinese)."""
    nlp = _nlp(code)
    cuts: set[int] = set()
    ends: set[int] = set()
    for begin, block in _blocks(text):
        doc = nlp(_LONG_RUN.sub(lambda run: run.group()[:-1] + " ", block))
        columns = doc.to_array(["IDX", "LENGTH", "SENT_START"]).tolist()  # tokens are slow to make
        for (start, length, _), (next_start, next_length, sentence) in pairwise(columns):
            if length > 1 or next_length > 1:
                cuts.add(begin + next_start)
            if sentence == 1:
                ends.add(begin + start + length)
    return _Tokens(frozenset(cuts), frozenset(ends))


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Cut a long text where a line or a word ends, if one does."""
    start = 0
    while start < len(text):
        end = min(start + _BLOCK, len(text))
        if end < len(text):
            end = next((at + 1 for c in "\n " if (at := text.rfind(c, start, end)) > 0), end)
        yield start, text[start:end]
        start = end


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


def _pieces(text: str, cuts: frozenset[int]) -> Iterator[tuple[int, int, Kind]]:
    for found in _word_pattern().finditer(text):
        start, end = found.span()
        match found.lastgroup:
            case "year":
                for part in ("day", "month", "year"):
                    yield *found.span(part), Kind.NUMBER
            case "number":
                yield start, end, Kind.NUMBER
            case "sign":
                yield start, end, Kind.SIGN
            case _:
                inner = [place for place in range(start + 1, end) if place in cuts]
                for left, right in zip([start, *inner], [*inner, end], strict=True):
                    yield left, right, Kind.LETTERS


@lru_cache(maxsize=1)
def _word_pattern() -> re.Pattern[str]:
    """Numbers, signs of unspaced scripts with their marks, and runs of letters with theirs."""
    marks = _marks()
    letter = rf"(?:(?![{_UNSPACED}])[^\W\d_])"
    return re.compile(
        rf"{_DATE}|(?P<number>{_GROUPED}|{_DECIMAL}|\d+)"
        rf"|(?P<sign>[{_UNSPACED}][{marks}]*)"
        rf"|(?P<letters>{letter}(?:{letter}|[{marks}\u200c\u200d]+(?=[^\W\d_]|[{marks}])|[{marks}])*)"
    )


@lru_cache(maxsize=1)
def _unspaced_runs() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSPACED}]+")


def _marks() -> str:
    """List the combining marks for a character class; Python's own classes leave them out."""
    marks = [c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M"]
    return re.escape("".join(marks))

"""What spaCy's blank pipelines know of a language: where words fall apart, where sentences end."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from spanlab.detectors.offline.normal import fold

if TYPE_CHECKING:
    from spacy.language import Language

# Scripts written without spaces (Thai, Lao, Myanmar, Khmer, Kana, Han), for a character class.
UNSPACED = (
    "\u0e01-\u0e46\u0e81-\u0edf\u1000-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)

# A text in a language that spaCy cannot read is read sign by sign from this share of such scripts.
_UNSPACED_SHARE = 0.3
# spaCy keeps every string it has ever seen; past this many it is built anew, so that a run over
# millions of items stays in bounded memory.
_VOCABULARY_LIMIT = 400_000
_BLOCK = 10_000  # characters per call: parts of spaCy take quadratic time on longer texts
# Its tokeniser takes quadratic time on runs without spaces (30 s for 20,000 brackets): for spaCy
# alone, every 60th character of such a run is replaced by a space.
_LONG_RUN = re.compile(r"\S{59}\S(?=\S)")


class Tokens(NamedTuple):
    """Offsets in a text at which words fall apart, and at which sentences end."""

    cuts: frozenset[int]
    ends: frozenset[int]


def readable(lang: str, text: str) -> str:
    """Choose the pipeline for a text.

    Args:
        lang: language code such as ``zh`` or ``pt-BR``.
        text: what is to be read.

    Returns:
        The language itself if spaCy reads it here; for one that it does not know, or only with
        further packages (Japanese, Korean, Thai, Vietnamese), ``zh`` (character by character) if
        the text is in a script without spaces, else ``xx`` (what all languages share).
    """
    code = lang.split("-", maxsplit=1)[0]
    if _blank(code) is not None:
        return code
    sample = text[:2000]
    unspaced = len(re.findall(rf"[{UNSPACED}]", sample))
    return "zh" if unspaced > _UNSPACED_SHARE * len(sample) else "xx"


def tokens(text: str, code: str) -> Tokens:
    """Ask spaCy where words fall apart, but not between single characters (Chinese).

    Args:
        text: any text.
        code: a pipeline that ``readable`` has chosen.

    Returns:
        Places after the first character; the end of the text is not among them.
    """
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
    return Tokens(frozenset(cuts), frozenset(ends))


@lru_cache(maxsize=32)
def stop_words(code: str) -> frozenset[str]:
    """Return a language's stop words, folded, without its words for numbers."""
    nlp = _nlp(code)
    words = (word for word in nlp.Defaults.stop_words if not nlp.vocab[word].like_num)
    return frozenset(fold(word) for word in words if not _is_numeral(word))


def _is_numeral(word: str) -> bool:
    return len(word) == 1 and unicodedata.numeric(word, None) is not None


def _nlp(code: str) -> Language:
    nlp = _blank(code)
    if nlp is not None and len(nlp.vocab) > _VOCABULARY_LIMIT:
        _blank.cache_clear()
        nlp = _blank(code)
    assert nlp is not None, f"spaCy reads {code!r}, as readable() has found"
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


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Cut a long text where a line or a word ends, if one does."""
    start = 0
    while start < len(text):
        end = min(start + _BLOCK, len(text))
        if end < len(text):
            end = next((at + 1 for c in "\n " if (at := text.rfind(c, start, end)) > start), end)
        yield start, text[start:end]
        start = end

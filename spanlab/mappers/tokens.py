"""Words and sentences of a text, by the rules of its language, as exact offsets.

Words come from spaCy's rule-based tokenizers (no trained model is needed). Scripts that do not
part words by spaces give one token per character; what stands between them, such as a number or a
Latin name in a Chinese answer, stays a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from spanlab.labels import Extent
from spanlab.mappers.scripts import UNSPACED, whole

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

# spaCy peels a run without spaces from its edges, copying the rest each time: 20,000 exclamation
# marks take half a minute. Runs longer than any word are cut by character class instead.
_LONGEST = 100
_OWN: Final = re.compile(rf"[{UNSPACED}]+|\S{{{_LONGEST + 1},}}")
_PIECE: Final = re.compile(rf"[{UNSPACED}]|\d+|[^\W\d_{UNSPACED}]+|\S")
_VOCABULARY = 200_000  # words a pipeline may remember before it is made anew

_ENDS: Final = frozenset("!?．。｡！？｡।॥؟۔։።፧፨။၊។៕‼‽⁇⁈⁉܀܁܂߹᠃᠉᱾᱿꛳꛷")
_ENDS_OF: Final = {"el": frozenset(";\u037e"), "grc": frozenset(";\u037e·")}
_CLOSERS: Final = frozenset("\"'”’»›)]}」』】）］｝》〉*_`")
_LAST: Final = _ENDS.union(_CLOSERS, ".…", *_ENDS_OF.values())  # what a sentence may end with
_NUMBER: Final = re.compile(r"(?:\d{3,}|\d+[.,]\d+)\.")  # no ordinal: the stop ends the sentence
_BREAKS: Final = "\n\r\x0b\x0c\x85\u2028\u2029"
_BREAK: Final = re.compile(f"[{_BREAKS}]")
_LINE: Final = re.compile(rf"\S(?:[^{_BREAKS}]*\S)?")  # without the space around it
_CHARACTERS: Final = frozenset(("bo", "ja", "km", "lo", "my", "th", "yue", "zh"))
_ORDINAL: Final = frozenset(
    ("cs", "da", "de", "et", "eu", "fi", "hr", "hu", "nb", "nn", "no", "sk")
)


def tokens(text: str, lang: str) -> list[Extent]:
    """Return the words and punctuation marks of ``text``; whitespace belongs to none.

    Args:
        text: any text.
        lang: BCP 47 tag, for example ``en``, ``zh-Hant`` or ``und``; languages for which spaCy
            has no rules of its own are read by its rules for any language.

    Returns:
        Characters ``[start, end)`` per token, in order, without overlap. No token begins or ends
        inside a letter with combining marks or a joined emoji. Empty for a text without words.
    """
    found: list[Extent] = []
    spaced = _OWN.sub(lambda run: _own(run, found), text)  # same length: offsets stay
    if not spaced.isspace() and spaced:
        found.extend(_words(spaced, lang))
    found.sort()
    return whole(text, found)


def sentences(text: str, lang: str) -> list[Extent]:
    """Return the sentences of ``text`` without the whitespace around them.

    A sentence ends at a mark that ends sentences in some script, with the quotation marks and
    brackets that close after it, and at every line break. A full stop ends one only before a
    space or a character of a script without spaces, not before a lower-case letter, and not
    inside an abbreviation that spaCy's rules know; after a number it is read as an ordinal where
    the language writes them so.

    Args:
        text: any text.
        lang: BCP 47 tag, for example ``en``, ``zh-Hant`` or ``und``.

    Returns:
        Characters ``[start, end)`` per sentence, in order; together they hold every character
        that is not whitespace. Empty for a text without any.
    """
    found: list[Extent] = []
    words, code = _pieces(text, lang), _code(lang)
    last = len(words) - 1
    begin = 0
    for index, (_, end) in enumerate(words):
        follows = words[index + 1].start if index < last else len(text)
        ended = text[end - 1] in _LAST and _ends_here(text, words, index, code)
        if ended or index == last or _BREAK.search(text, end, follows):
            found.append(Extent(words[begin].start, end))
            begin = index + 1
    return found


def load() -> None:
    """Import what reads words, once in a process; it takes about a second."""
    _pipeline("xx")


def _pieces(text: str, lang: str) -> list[Extent]:
    """Return the tokens where a sentence may end, and as one piece each what lies between.

    Runs without spaces are read by themselves, so those without a mark need no rules: most of a
    text, and most of the time that its tokens take.
    """
    runs = list(_ending(_code(lang)).finditer(text))
    words = tokens("".join(_apart(text, runs)), lang)
    found: list[Extent] = []
    last = at = word = 0
    for run in runs:
        _between(text, last, run.start(), found)
        last, shift = run.end(), run.start() - at
        at += len(run[0]) + 1
        while word < len(words) and words[word].start < at:
            found.append(Extent(words[word].start + shift, words[word].end + shift))
            word += 1
    _between(text, last, len(text), found)
    return found


def _apart(text: str, runs: list[re.Match[str]]) -> Iterator[str]:
    """Yield runs and one space between them; a line break where the text has more than that."""
    last = 0
    for run in runs:
        if last:
            yield text[last] if run.start() == last + 1 else "\n"
        yield run[0]
        last = run.end()


def _between(text: str, start: int, end: int, found: list[Extent]) -> None:
    """Put what stands in ``[start, end)``, line by line, without the space around, in ``found``."""
    found.extend(Extent(*line.span()) for line in _LINE.finditer(text, start, end))


@lru_cache(maxsize=64)
def _ending(code: str) -> re.Pattern[str]:
    """Return what finds the runs with a mark that may end a sentence."""
    marks = re.escape("".join(_ENDS | _ENDS_OF.get(code, frozenset()) | {".", "…"}))
    return re.compile(rf"(?<!\S)[^\s{marks}]*+[{marks}]\S*+")


def _own(run: re.Match[str], found: list[Extent]) -> str:
    """Cut a run that is not spaCy's into ``found``; return as much space."""
    start = run.start()
    found.extend(
        Extent(start + piece.start(), start + piece.end()) for piece in _PIECE.finditer(run[0])
    )
    return " " * len(run[0])


def _words(text: str, lang: str) -> list[Extent]:
    doc = _read(text, _code(lang))
    found: list[Extent] = []
    for start, length in doc.to_array(["IDX", "LENGTH"]).tolist():
        if text[start].isspace():
            continue
        end = start + length
        if length > 3 and text[end - 1] == "." and _NUMBER.fullmatch(text, start, end):
            found += (Extent(start, end - 1), Extent(end - 1, end))
        else:
            found.append(Extent(start, end))
    return found


def _code(lang: str) -> str:
    return lang.partition("-")[0].lower()


_reading = Lock()  # a tokenizer keeps a cache that two threads must not change at once


def _read(text: str, code: str) -> Doc:
    with _reading:
        language = _pipeline(code)
        if len(language.vocab.strings) > _VOCABULARY:
            _pipeline.cache_clear()
            language = _pipeline(code)
        # The tokenizer itself has no limit on length; `nlp(text)` refuses a million characters.
        return language.tokenizer(text)


@lru_cache(maxsize=64)
def _pipeline(code: str) -> Language:
    import spacy

    if code in _CHARACTERS:  # what stands between their characters follows no rules of theirs
        return _pipeline("xx")
    try:
        language = spacy.blank(code)
    except ImportError:  # unknown, or known but for a tokenizer of another package
        return _pipeline("xx")
    vocab: Any = language.vocab  # whose types leave this out
    vocab.lex_attr_getters.clear()  # shape, prefix … of every new word: nobody asks for them
    return language


def _ends_here(text: str, words: list[Extent], index: int, code: str) -> bool:
    """Say whether a sentence ends after this token and not later."""
    mark = index
    while mark >= 0 and _closes(text, words, mark):
        mark -= 1
    if mark < 0 or not _is_end(text, words, mark, code):
        return False
    if index == len(words) - 1:
        return True
    start, end = words[index + 1]
    adjacent = words[index].end == start
    following = text[start:end]
    if adjacent and (_closes(text, words, index + 1) or _is_end(text, words, index + 1, code)):
        return False
    stop = text[words[mark].start : words[mark].end]
    if stop.isascii() and adjacent:
        return re.match(f"[{UNSPACED}]", following) is not None
    return not (stop[0] in ".…" and following[0].islower())


def _closes(text: str, words: list[Extent], index: int) -> bool:
    start, end = words[index]
    attached = index > 0 and words[index - 1].end == start
    return attached and _CLOSERS.issuperset(text[start:end])


def _is_end(text: str, words: list[Extent], index: int, code: str) -> bool:
    start, end = words[index]
    token = text[start:end]
    if _ENDS.issuperset(token) or token in _ENDS_OF.get(code, ()):
        return True
    if not token.strip("…") or not token.strip("."):
        return not (code in _ORDINAL and index and _is_ordinal(text, words[index - 1], start))
    return False


def _is_ordinal(text: str, number: Extent, stop: int) -> bool:
    """Say whether a full stop at ``stop`` makes an ordinal of a number before it."""
    start, end = number
    return end == stop and end - start < 3 and text[start:end].isdecimal()

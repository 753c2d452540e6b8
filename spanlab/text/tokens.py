"""Words and sentences by the rules of a language.

Words come from spaCy's rule-based tokenizers (no trained model is needed). Scripts that do not
part words by spaces give one token per character; what stands between them, such as a number or a
Latin name in a Chinese answer, stays a word.

To compile that pattern takes three seconds of every process, at the import of spaCy's rules for
French, and alignment parts words at hyphens anyway. What remains are elisions and abbreviations.
"""

from __future__ import annotations

import re
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spanlab.text.extents import Extent
from spanlab.text.terms import UNSPACED, whole

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
_ABBREVIATED: Final = re.compile(
    r"\b(?:abb|art|bd|ch|figs?|kap|nos?|nr|núm|pág|pp?|sec|tab|vol)\.$", re.IGNORECASE
)  # whose stop ends nothing where a number follows
_LONGEST_ABBREVIATED: Final = 6  # of them, with the character before
_BREAKS: Final = "\n\r\x0b\x0c\x85\u2028\u2029"
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
    extents: list[Extent] = []
    spaced = _OWN.sub(lambda run: _own(run, extents), text)  # same length: offsets stay
    if not spaced.isspace() and spaced:
        extents.extend(_words(spaced, lang))
    extents.sort()
    return whole(text, extents)


def sentences(text: str, lang: str) -> list[Extent]:
    """Return the sentences of ``text`` without the whitespace around them.

    A sentence ends at a mark that ends sentences in some script, with the quotation marks and
    brackets that close after it, and at every line break. A full stop ends one only before a
    space or a character of a script without spaces, not before a lower-case letter, not between
    "no." or the like and its number, and not inside an abbreviation that spaCy's rules know; after
    a number it is read as an ordinal where the language writes them so. ``lang`` is as in
    ``tokens``.

    Returns:
        Characters ``[start, end)`` per sentence, in order; together they hold every character
        that is not whitespace. Empty for a text without any.
    """
    extents: list[Extent] = []
    code = _code(lang)
    for line in _LINE.finditer(text):
        begin, end = line.span()
        for marked in _ending(code).finditer(text, begin, end):
            at, stop = marked.span()
            while at > begin and not text[at - 1].isspace():
                at -= 1
            ends = _ends_of(text[at:stop], code)
            for inner in ends.inner:
                extents.append(Extent(begin, at + inner))
                begin = _next(text, at + inner)
            if ends.last and stop < end:
                after = _next(text, stop)
                if not (ends.open and _goes_on(text, stop, after)):
                    extents.append(Extent(begin, stop))
                    begin = after
        extents.append(Extent(begin, end))
    return extents


def load(lang: str) -> Future[None]:
    """Begin to load a language's tokenizer, in a thread, once in a process.

    It takes about a second, and a tenth for each language.

    Returns:
        A future that is done when texts of ``lang`` (a BCP 47 tag) are read without delay.
    """
    code = _code(lang)
    return _LOADED if code in _loaded else _loader.submit(_load, code)


_loader = ThreadPoolExecutor(1, thread_name_prefix="languages")
_loaded: set[str] = set()
_LOADED: Final[Future[None]] = Future()


_LOADED.set_result(None)


def _load(code: str) -> None:
    _pipeline(code)
    _loaded.add(code)


class _SentenceEnds(NamedTuple):
    """Ends of sentences inside a run, and whether one ends with it (if ``open``: no lower case)."""

    inner: tuple[int, ...]
    last: bool
    open: bool


@lru_cache(maxsize=64)
def _ending(code: str) -> re.Pattern[str]:
    """Return a pattern of the runs without spaces that hold a mark which may end a sentence.

    A match begins with the first mark: to look for that is quicker than to look at every word.
    Such runs with one space between them are one: some abbreviations have a space inside. What
    lies between needs no rules: most of a text, and most of the time that its tokens take.
    """
    marks = re.escape("".join(_ENDS | _ENDS_OF.get(code, frozenset()) | {".", "…"}))
    return re.compile(rf"[{marks}]\S*+(?>(?: [^\s{marks}]*+[{marks}]\S*+)*)")


def _ends_of(run: str, code: str) -> _SentenceEnds:
    """Return where sentences end in a run; short ones are cached, as the same ones come often."""
    return (_short_ends if len(run) <= _LONGEST else _read_ends)(run, code)


def _read_ends(run: str, code: str) -> _SentenceEnds:
    words = tokens(run, code)
    ends = [
        index
        for index, (_, end) in enumerate(words)
        if run[end - 1] in _LAST and _ends_here(run, words, index, code)
    ]
    last = bool(ends) and ends[-1] == len(words) - 1
    inner = tuple(words[index].end for index in (ends[:-1] if last else ends))
    mark = words[_mark_before(run, words, len(words) - 1)].start if last else 0
    return _SentenceEnds(inner, last, last and run[mark] in ".…")


_short_ends = lru_cache(maxsize=20_000)(_read_ends)


def _next(text: str, start: int) -> int:
    """Return the place of the next character that is not whitespace; there must be one."""
    while text[start].isspace():
        start += 1
    return start


def _own(run: re.Match[str], extents: list[Extent]) -> str:
    """Cut a run that is not spaCy's into ``extents``; return as much space."""
    start = run.start()
    extents.extend(
        Extent(start + piece.start(), start + piece.end()) for piece in _PIECE.finditer(run[0])
    )
    return " " * len(run[0])


def _words(text: str, lang: str) -> list[Extent]:
    doc = _read(text, _code(lang))
    words: list[Extent] = []
    for start, length in doc.to_array(["IDX", "LENGTH"]).tolist():
        if text[start].isspace():
            continue
        end = start + length
        if length > 3 and text[end - 1] == "." and _NUMBER.fullmatch(text, start, end):
            words += (Extent(start, end - 1), Extent(end - 1, end))
        else:
            words.append(Extent(start, end))
    return words


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
        language = french() if code == "fr" else spacy.blank(code)
    except ImportError:  # unknown, or known but for a tokenizer of another package
        return _pipeline("xx")
    vocab: Any = language.vocab  # whose types leave this out
    vocab.lex_attr_getters.clear()  # shape, prefix … of every new word: nobody asks for them
    return language


def _mark_before(text: str, words: list[Extent], index: int) -> int:
    """Return the token before those that close a sentence after its mark; -1 if there is none."""
    while index >= 0 and _closes(text, words, index):
        index -= 1
    return index


def _ends_here(text: str, words: list[Extent], index: int, code: str) -> bool:
    """Return whether a sentence ends after this token and not later, judged by these words."""
    mark = _mark_before(text, words, index)
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
    return not (stop[0] in ".…" and _goes_on(text, words[mark].end, start))


def _goes_on(text: str, stop: int, after: int) -> bool:
    """Return whether a full stop before ``stop`` ends no sentence, by what comes at ``after``."""
    before = text[max(stop - _LONGEST_ABBREVIATED, 0) : stop]
    return text[after].islower() or (text[after].isdecimal() and bool(_ABBREVIATED.search(before)))


def _closes(text: str, words: list[Extent], index: int) -> bool:
    start, end = words[index]
    attached = index > 0 and words[index - 1].end == start
    return attached and _CLOSERS.issuperset(text[start:end])


def _is_end(text: str, words: list[Extent], index: int, code: str) -> bool:
    start, end = words[index]
    token = text[start:end]
    if _ENDS.issuperset(token) or token in _ENDS_OF.get(code, ()):
        return True
    if token.strip("…") and token.strip("."):
        return False
    if code not in _ORDINAL or not index:
        return True
    number = words[index - 1]  # with a full stop right after it, an ordinal
    short = number.end == start and number.end - number.start < 3
    return not (short and text[number.start : number.end].isdecimal())


_ELISION: Final = "'’"

_WHOLE: Final = (
    *("aujourd'hui", "Aujourd'hui", "aujourd’hui", "Aujourd’hui"),
    *("janv.", "févr.", "avr.", "juill.", "sept.", "oct.", "nov.", "déc."),
    *("Dr.", "M.", "MM.", "Mlle.", "Mme.", "Mr.", "St.", "Ste."),
    *("apr.", "av.", "cf.", "etc.", "No.", "pp.", "Vol.", "J.-C."),
)


def french() -> Language:
    """Return a pipeline that cuts French texts into words."""
    import spacy
    from spacy.lang import punctuation
    from spacy.lang.char_classes import ALPHA
    from spacy.util import compile_infix_regex, compile_prefix_regex

    language = spacy.blank("xx")
    tokenizer: Any = language.tokenizer  # whose type is that of any function
    elided = rf"[dlnDLN][{_ELISION}](?=[{ALPHA}])"
    prefixes = compile_prefix_regex([*punctuation.TOKENIZER_PREFIXES, elided])
    elision = rf"(?<=[{ALPHA}][{_ELISION}])(?=[{ALPHA}])"
    infixes = compile_infix_regex([*punctuation.TOKENIZER_INFIXES, elision])
    tokenizer.prefix_search = prefixes.search
    tokenizer.infix_finditer = infixes.finditer
    for word in _WHOLE:
        tokenizer.add_special_case(word, [{"ORTH": word}])
    return language

"""Rules for code in answers: references that no documentation has.

Words are compared otherwise in code than in prose: ``--with-ignored`` is one word, a variable that
the answer defines needs no support, and an option that no passage names is made up. Judged is what
documentation decides: flags and subcommands of the commands that the passages show, options in
configuration, arguments, methods and functions by name, and short quotes in the text. Strings,
values and file names are the user's own.
"""

from __future__ import annotations

import builtins
import io
import keyword
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz, process

from spanlab.systems.offline.words import WordKind, blank_marks, read

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})([^\n`]*)\n(.*?)(?:^[ \t]*\2[ \t]*$|\Z)", re.M | re.S)
_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
_HIDDEN = re.compile(  # strings, comments and addresses are no references
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|(?:^|(?<=\s))(?:#|//)[^\n]*|(?<!\w)\w+://[^\s\"'`]+",
    re.M,
)
_TOKEN = re.compile(r"(?<![\w-])--?[A-Za-z][\w.-]*|[~.]?/[\w./:@~-]+|\.?[^\W\d][\w-]*[\w]|[^\W\d]")
_FLAG = re.compile(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*(?:\.[\w-]+)*")
_METHOD = re.compile(r"(?:(?<!\w)(\w+)|[)\]])\.([A-Za-z_]\w*)(?=\s*\()")
_CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?=\s*\()")
_ARGUMENT = re.compile(r"(?<=[(,\s])([A-Za-z_]\w*)(?==[^=])")
_KEY = re.compile(r"^[ \t]*(?:-[ \t]+)?([A-Za-z][\w-]*)(?=\s*[:=]|[ \t]+[^\s={])", re.M)
_DEFINED = re.compile(
    r"\b(?:def|class|function|import|as|for|let|const|var|fn|func|type|export)\s+([\w, ]+)"
    r"|^[ \t]*([A-Za-z_]\w*)(?:\s*:\s*[\w\[\]. |]+)?\s*(?::|\?|\+)?=(?!=)"
    r"|\bdef\s+\w+\(([^)]*)\)",
    re.M,
)
_COMMANDS = re.compile(r"&&|\|\|?|;|\n")
_PATH = re.compile(r"(?:[~.]|\.\.)?/[\w./:@+-]+|\.[a-z][\w.-]*/?[\w./-]*")
_WORD = re.compile(r"\w+")
_JOINED = re.compile(r"[\w./-]")  # before a number that is a part of a name
_LETTERS = re.compile(r"[A-Za-z%]+")
_PIECE = re.compile(r"\S+")
_SHOUTED = re.compile(r"[A-Z]{3,}")  # a command such as those of redis
_PLAIN = re.compile(r"[a-z]+|[A-Z][a-z]+")
_SHELL = frozenset({"", "sh", "bash", "shell", "console", "zsh"})
_ASSIGNING = (_SHELL - {""}) | {
    "python", "py", "make", "makefile", "js", "javascript", "ts", "typescript", "go", "rust",
    "java", "c", "cpp", "ruby", "php", "sql",
}  # fmt: skip
_USUAL = frozenset({  # what needs no documentation beside another's
    "add", "clone", "commit", "push", "pull", "fetch", "merge", "switch", "checkout", "branch",
    "log", "status", "diff", "install", "run", "test", "build", "help", "version", "--help",
    "--version", "apiVersion",
})  # fmt: skip
_LEAST_SHOWN = 2  # subcommands that passages have to show before another is made up
_LONGEST_LETTERS = 5  # characters of one-letter flags together: -avzP
_ALIKE = 50  # rapidfuzz ratio in [0, 100] from which a documented word is worth showing


class CodePiece(NamedTuple):
    """Characters ``[start, end)`` of an answer that are code; ``language`` is None in a line."""

    start: int
    end: int
    language: str | None


class MadeUp(NamedTuple):
    """Characters of an answer that no passage has, and the word there that is most like them."""

    start: int
    end: int
    closest: str | None
    number: bool = False


def pieces(answer: str) -> list[CodePiece]:
    """Return the code of an answer without its fences, in order."""
    fenced = [
        CodePiece(*match.span(4), (match[3].split() or [""])[0].lower())
        for match in _FENCE.finditer(answer)
    ]
    prose = _blank(_FENCE, answer)
    inline = [CodePiece(*match.span(2), None) for match in _INLINE.finditer(prose)]
    return sorted(fenced + inline, key=lambda piece: piece.start)


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Overwrite what a pattern finds with spaces; offsets stay."""
    return pattern.sub(lambda match: " " * len(match.group()), text)


class Documentation:
    """What passages and question say, read as documentation of commands and options."""

    def __init__(self, question: str, passages: Sequence[str]) -> None:
        self._question, self._passages = question, passages

    @cached_property
    def _quotes(self) -> list[str]:
        """Lines of code in the passages."""
        return [
            line
            for text in self._passages
            for piece in pieces(text)
            for line in text[piece.start : piece.end].splitlines()
        ]

    @cached_property
    def tokens(self) -> frozenset[str]:
        """Return all words of code, whole and in parts."""
        found: set[str] = set()
        for text in (*self._passages, self._question):
            found.update(token.rstrip(".-:") for token in _TOKEN.findall(text))
            found.update(_WORD.findall(text))
        return frozenset(found)

    @cached_property
    def following(self) -> dict[str, set[str]]:
        """Return by the words that begin a command those that follow them, where it is quoted."""
        found: dict[str, set[str]] = defaultdict(set)
        for words in map(str.split, self._quotes):
            for count in range(1, min(len(words), 3)):
                if _plain_word(words[count]):
                    found[" ".join(words[:count])].add(words[count])
        return found

    def has(self, token: str) -> bool:
        """Return whether a word stands somewhere, or what it may begin with (``FLASK_``)."""
        if token in self.tokens or token in _USUAL:
            return True
        return any(token.startswith(prefix) for prefix in self._prefixes)

    @cached_property
    def _prefixes(self) -> tuple[str, ...]:
        return tuple(token for token in self.tokens if token.endswith("_") and len(token) > 2)

    def is_code(self, token: str) -> bool:
        """Return whether a word stands in the passages as code: quoted, or no plain word."""
        return token in self._quoted or (token in self._shown and _compound(token))

    @cached_property
    def _shown(self) -> frozenset[str]:
        return frozenset(token for text in self._passages for token in _TOKEN.findall(text))

    @cached_property
    def _quoted(self) -> frozenset[str]:
        return frozenset(token for quote in self._quotes for token in _TOKEN.findall(quote))

    @cached_property
    def commands(self) -> frozenset[str]:
        """Return the first words of what the passages quote."""
        return frozenset(word for quote in self._quotes for word in quote.split()[:1])

    def closest(self, token: str) -> str | None:
        """Return the word of code of the same sort that is most like one that is not there."""
        like = self._by_sort.get(_sort(token), [])
        best = process.extractOne(token, like, scorer=fuzz.ratio, score_cutoff=_ALIKE)
        return None if best is None else str(best[0])

    @cached_property
    def _by_sort(self) -> dict[str, list[str]]:
        sorts: dict[str, list[str]] = defaultdict(list)
        for token in sorted(self._shown | self._quoted):
            if self.is_code(token) and len(token) > 1:
                sorts[_sort(token)].append(token)
        return sorts


def _sort(token: str) -> str:
    return "flag" if token[0] == "-" else "path" if "/" in token else "name"


def _plain_word(word: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9_-]*", word) is not None


class CheckedCode(NamedTuple):
    """The code of an answer, and what is made up in it and in the numbers around, in order."""

    pieces: list[CodePiece]
    made_up: list[MadeUp]


def check_code(answer: str, question: str, passages: Sequence[str]) -> CheckedCode | None:
    """Compare an answer's code with its passages.

    Returns:
        None if the answer has no code, or the passages have nothing of it: then they are no
        documentation of it, and everything is judged as prose.
    """
    code = pieces(answer)
    found = _references_not_in(code, answer, question, passages) if code else None
    if found is None:
        return None
    found += _numbers(answer, code, [question, *passages])
    return CheckedCode(code, _joined(answer, sorted(found, key=lambda one: (one.start, -one.end))))


def _references_not_in(
    code: Sequence[CodePiece], answer: str, question: str, passages: Sequence[str]
) -> list[MadeUp] | None:
    """Return the references that neither passages nor question have; None if they have no code."""
    documentation = Documentation(question, passages)
    texts = [answer[piece.start : piece.end] for piece in code]
    tokens = {token for text in texts for token in _TOKEN.findall(text)}
    if not any(documentation.is_code(token) for token in tokens):
        return None
    defined = frozenset(
        name
        for piece, text in zip(code, texts, strict=True)
        if piece.language in _ASSIGNING
        for match in _DEFINED.finditer(text)
        for name in _WORD.findall(" ".join(part or "" for part in match.groups()))
    )
    programs = " ".join(
        text for piece, text in zip(code, texts, strict=True) if piece.language in _ASSIGNING
    )
    found: list[MadeUp] = []
    for piece, text in zip(code, texts, strict=True):
        visible = _HIDDEN.sub(lambda match: " " * len(match.group()), text)
        for start, end, certain in _references(piece, visible, documentation):
            token = visible[start:end]
            used = piece.language is None and token in programs
            known = documentation.has(token) or token in defined or token in _python_names() or used
            if certain or not known:
                low = piece.start + start
                found.append(MadeUp(low, piece.start + end, documentation.closest(token)))
    return found


def _numbers(answer: str, code: Sequence[CodePiece], others: Sequence[str]) -> list[MadeUp]:
    """Find the numbers of an answer's prose that stand in no other text, nor in its code.

    Those that are parts of names, as in "H.264", and numbers of lists are left alone.
    """
    texts = [*others, *(answer[piece.start : piece.end] for piece in code)]
    known = {form for text in texts for form in read(text).forms}
    prose = read(blank_marks(_blank(_INLINE, _blank(_FENCE, answer))))
    found = []
    for start, end, form, kind in zip(
        prose.starts, prose.ends, prose.forms, prose.kinds, strict=True
    ):
        joined = _JOINED.fullmatch(answer[start - 1 : start]) if start else None
        if kind is WordKind.NUMBER and form not in known and not joined:
            unit = _LETTERS.match(answer, end)
            found.append(MadeUp(start, unit.end() if unit else end, None, number=True))
    return found


def _joined(answer: str, found: list[MadeUp]) -> list[MadeUp]:
    """Join what only spaces part, and leave out what lies in another."""
    kept: list[MadeUp] = []
    for one in found:
        if kept and (one.start < kept[-1].end or answer[kept[-1].end : one.start] == " "):
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, one.end))
        else:
            kept.append(one)
    return kept


class _Reference(NamedTuple):
    """Characters of a piece of code; ``certain`` if they are made up whatever else they are."""

    start: int
    end: int
    certain: bool = False


def _references(piece: CodePiece, text: str, documentation: Documentation) -> Iterator[_Reference]:
    """Yield what documentation decides on in a piece of code."""
    if piece.language is None:
        yield from _in_line(text, documentation)
    if piece.language in _SHELL:
        yield from _of_commands(text, documentation)
    if piece.language not in _ASSIGNING and piece.language is not None:
        keys = list(_KEY.finditer(text))
        if piece.language or any(documentation.has(key[1]) for key in keys):
            yield from (_Reference(*key.span(1)) for key in keys if _compound(key[1]))
    if piece.language not in _SHELL:
        yield from (
            _Reference(*match.span(2))
            for match in _METHOD.finditer(text)
            if match[1] not in sys.stdlib_module_names
        )
        for pattern in (_CALL, _ARGUMENT):
            yield from (
                _Reference(*match.span(1))
                for match in pattern.finditer(text)
                if _compound(match[1])
            )


def _in_line(text: str, documentation: Documentation) -> Iterator[_Reference]:
    """Yield what documentation decides on in code within a line."""
    whole = text.strip()
    begin = text.index(whole)
    if " " in whole:
        yield from _of_commands(text, documentation)
    elif _PATH.fullmatch(whole):
        if not any(_side_by_side(whole, known) for known in documentation.tokens):
            yield _Reference(begin, begin + len(whole))
    elif name := re.match(r"-{0,2}[A-Za-z][\w-]*(?=$|[=(])", whole):
        yield _Reference(begin, begin + name.end())


def _side_by_side(path: str, known: str) -> bool:
    """Return whether two paths name files of one sort in one folder: units, settings of sites."""
    (folder, name), (other, known_name) = (
        (place, file) for place, _, file in (path.rpartition("/"), known.rpartition("/"))
    )
    ending = name.rpartition(".")[2]
    return bool(folder) and folder == other and "." in name and known_name.endswith(f".{ending}")


def _of_commands(text: str, documentation: Documentation) -> Iterator[_Reference]:
    """Yield long flags and subcommands of commands that passages show.

    Of one-letter flags too many are left out in what is quoted of a manual.
    """
    begin = 0
    for end in [*(match.start() for match in _COMMANDS.finditer(text)), len(text)]:
        line, start = text[begin:end], begin
        begin = end + 1
        words = list(_PIECE.finditer(line))
        if not words:
            continue
        first = words[0][0]
        if not (first[0] == "-" or first in documentation.commands):
            if _SHOUTED.fullmatch(first):
                yield _Reference(start + words[0].start(), start + words[0].end())
            continue
        for flag in _FLAG.finditer(line):
            if len(flag[0]) > _LONGEST_LETTERS or flag[0][1] == "-":
                yield _Reference(start + flag.start(), start + flag.end())
        for count in range(1, min(len(words), 3)):
            shown = documentation.following.get(" ".join(word[0] for word in words[:count]), set())
            word = words[count]
            if len(shown) >= _LEAST_SHOWN and _plain_word(word[0]) and word[0] not in _USUAL:
                made = word[0] not in shown
                yield _Reference(start + word.start(), start + word.end(), certain=made)


def _compound(name: str) -> bool:
    """Return whether a name is so special that it is no plain word of the user's."""
    return not _PLAIN.fullmatch(name) and len(name) > 2


@lru_cache(maxsize=1)
def _python_names() -> frozenset[str]:
    """Names that Python has by itself."""
    types = (str, bytes, list, dict, set, int, float, io.TextIOWrapper, io.BytesIO, BaseException)
    methods = {name for kind in types for name in dir(kind)}
    return frozenset(
        {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *sys.stdlib_module_names, *methods}
    )

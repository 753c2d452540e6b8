"""Texts as tokens of a checkpoint, with exact offsets: pairs of texts, in windows if need be.

The first text of a pair is what is read (passages), the second what is judged (an answer, or a
claim). Where both are longer than the model takes, the second is read in pieces and the passages
in windows that overlap; every piece is read with every window, and nothing is cut off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, TypeVarTuple

from spanlab.base.errors import InputError, SandboxError, SpanlabError, missing_package
from spanlab.base.processes import parsers
from spanlab.text.extents import Extent

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Prompt = Callable[[Sequence[str]], str]  # the first text, made from what is read of the passages
_SECONDS: Final = 15.0  # of processor time to load a tokenizer and have it cut a text
_LEAST: Final = 8  # tokens that must be left for passages and answer
_OVERLAP: Final = 4  # a fourth of each window is in the next one, too
_END: Final = re.compile(r"[.!?。！？।؟]['\"”’»)\]]*\s+|[。！？]|\n+")
_SPACE: Final = re.compile(r"\s+")


class TokenWindow(NamedTuple):
    """A row for a network: ids and types, and which tokens hold which characters of the second.

    ``places`` are characters ``[start, end)`` of the second text, by number of the token.
    """

    ids: list[int]
    types: list[int]
    places: dict[int, Extent]


class TokenEncoding(NamedTuple):
    """What is used of an ``Encoding`` of the package ``tokenizers``, by the same names."""

    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]
    offsets: list[tuple[int, int]]


@dataclass(frozen=True)
class SandboxTokenizer:
    """A tokenizer of a file, ``changed`` when it says, that loads and works in the sandbox.

    Its rules are a program: with regular expressions, and texts that they make longer.
    """

    path: Path
    changed: int

    def highest(self) -> int:
        """Return its highest token id; below 0 if it has none."""
        return self._run(_highest)

    def encode(
        self, first: str, second: str | None = None, *, add_special_tokens: bool = True
    ) -> TokenEncoding:
        """Return a text, or a pair of texts, as tokens.

        Raises:
            InputError: the tokenizer breaks on them, or takes too long or too much.
        """
        return self._run(_encoded, first, second, add_special_tokens)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return tokens as text; raises as ``encode``."""
        return self._run(_decoded, ids, skip_special_tokens)

    def _run(self, work: Callable[[Path, int, *Ts], T], *args: *Ts) -> T:
        try:
            return parsers().run(_SECONDS, work, self.path, self.changed, *args)
        except SandboxError as error:
            raise InputError(f"the tokenizer broke: {error}", file=self.path) from None


class TokenizedPiece(NamedTuple):
    """Characters ``[start, end)`` of the second text, and its rows: one for each window."""

    start: int
    end: int
    rows: tuple[TokenWindow, ...]


@dataclass(frozen=True)
class CheckpointTokenizer:
    """A checkpoint's tokenizer; ``limit`` is how many tokens a row may have."""

    tokenizer: Any
    limit: int
    place: str

    @classmethod
    def of(cls, path: Path, limit: int, vocabulary: object) -> CheckpointTokenizer:
        """Read a tokenizer.

        Args:
            path: the JSON of a fast tokenizer, in the checkpoint's folder.
            limit: tokens of a row at most.
            vocabulary: how many token ids the network knows, if it is a number.

        Raises:
            UsageError: the package ``tokenizers`` is missing.
            InputError: the tokenizer is damaged, or another network's.
        """
        tokenizer = SandboxTokenizer(path.resolve(), path.stat().st_mtime_ns)
        highest = tokenizer.highest()
        if highest < 0 or (isinstance(vocabulary, int) and highest >= vocabulary):
            raise InputError(
                "the tokenizer is not this model's",
                file=path,
                found=f"token ids up to {highest}",
                expected=f"up to {vocabulary} tokens (vocab_size in config.json)",
            )
        return cls(tokenizer, limit, str(path.parent))

    def pair(self, first: str, second: str) -> TokenWindow:
        """Return a pair of texts as a row, however long."""
        encoded = self.tokenizer.encode(first, second)
        places = {
            at: Extent(start, end)
            for at, (sequence, (start, end)) in enumerate(
                zip(encoded.sequence_ids, encoded.offsets, strict=True)
            )
            if sequence == 1 and end > start
        }
        whole = _whole(second, list(places.values()))
        return TokenWindow(encoded.ids, encoded.type_ids, dict(zip(places, whole, strict=True)))

    def places(self, text: str) -> list[Extent]:
        """Return the characters ``[start, end)`` of the tokens of a text, in order."""
        offsets = self.tokenizer.encode(text, add_special_tokens=False).offsets
        return _whole(text, [Extent(start, end) for start, end in offsets if end > start])

    def read(self, prompt: Prompt, passages: Sequence[str], text: str) -> list[TokenizedPiece]:
        """Return rows in which all of a text is read with all of the passages.

        Args:
            prompt: makes the first text of a row.
            passages: what is read.
            text: what is judged.

        Returns:
            Pieces of the text in order, one if it fits; empty for a text without tokens.

        Raises:
            InputError: what surrounds the passages leaves no room for them.
        """
        whole = self.pair(prompt(passages), text)
        if not whole.places:
            return []
        if len(whole.ids) <= self.limit:
            return [TokenizedPiece(0, len(text), (whole,))]
        room = self.limit - len(self.pair(prompt([]), "").ids)
        if room < 2 * _LEAST:
            raise InputError(
                f"the question and what surrounds it have {self.limit - room:,} tokens, "
                f"and the model takes {self.limit:,}: no room is left for passages and answer",
                file=self.place,
                expected="a format or template without the question",
            )
        most = max(room // 2 if passages else room - _LEAST, _LEAST)
        sources = [self.places(passage) for passage in passages]
        return [
            TokenizedPiece(
                start, end, tuple(self._windows(prompt, passages, sources, text[start:end]))
            )
            for start, end in self._pieces(text, most)
        ]

    def _pieces(self, text: str, most: int) -> Iterator[Extent]:
        """Cut a text at ends of sentences, or else words, so that pieces have few enough tokens."""
        tokens = self.places(text)
        first = start = 0
        while len(tokens) - first > most:
            last = first + most
            while last > first + 1 and tokens[last].start < tokens[last - 1].end:
                last -= 1  # tokens that share a character stay together
            cut = _cut(text, tokens[(first + last) // 2].start, tokens[last].start)
            yield Extent(start, cut)
            start = cut
            while first < len(tokens) and tokens[first].start < cut:
                first += 1
        yield Extent(start, len(text))

    def _windows(
        self,
        prompt: Prompt,
        passages: Sequence[str],
        sources: Sequence[Sequence[Extent]],
        text: str,
    ) -> Iterator[TokenWindow]:
        tokens = [(number, place) for number, source in enumerate(sources) for place in source]
        used = len(self.pair(prompt([]), text).ids)
        begin, room = 0, self.limit - used
        while True:
            end = min(begin + max(room, 1), len(tokens))
            row = self.pair(prompt(_parts_of_passages(passages, tokens[begin:end])), text)
            while len(row.ids) > self.limit and end > begin + 1:
                end = max(end - (len(row.ids) - self.limit), begin + 1)
                row = self.pair(prompt(_parts_of_passages(passages, tokens[begin:end])), text)
            if len(row.ids) > self.limit:
                raise InputError(
                    "what surrounds a passage leaves no room for it",
                    file=self.place,
                    found=f"{len(row.ids):,} tokens",
                    expected=f"at most {self.limit:,}",
                )
            yield row
            if end >= len(tokens):
                return
            begin = max(end - (end - begin) // _OVERLAP, begin + 1)


@lru_cache(maxsize=4)
def _loaded(path: Path, _changed: int) -> Any:
    """Load a tokenizer, in the sandbox."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise missing_package("a local encoder", error.name, "encoder") from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the package raises Exception itself
        raise InputError(f"the tokenizer is damaged: {str(error)[:200]}", file=path) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _highest(path: Path, changed: int) -> int:
    return max(_loaded(path, changed).get_vocab(with_added_tokens=True).values(), default=-1)


def _encoded(
    path: Path, changed: int, first: str, second: str | None, special: bool
) -> TokenEncoding:
    tokenizer = _loaded(path, changed)
    try:
        encoded = tokenizer.encode(first, second, add_special_tokens=special)
    except Exception as error:  # noqa: BLE001 - the package raises Exception itself
        raise InputError(f"the tokenizer broke: {str(error)[:200]}", file=path) from None
    return TokenEncoding(encoded.ids, encoded.type_ids, encoded.sequence_ids, encoded.offsets)


def _decoded(path: Path, changed: int, ids: Sequence[int], skip: bool) -> str:
    return str(_loaded(path, changed).decode(ids, skip_special_tokens=skip))


def _whole(text: str, places: list[Extent]) -> list[Extent]:
    """Return places that hold all of a text but white space.

    A normaliser may compose a letter with its marks, or drop a character: what no token holds
    belongs to the one before, or else to the first.
    """
    for at, (start, end) in enumerate(places):
        following = places[at + 1].start if at + 1 < len(places) else len(text)
        dropped = text[end:following].rstrip()
        first = 0 if at == 0 and text[:start].strip() else start
        if dropped or first != start:
            places[at] = Extent(first, end + len(dropped))
    return places


def _parts_of_passages(passages: Sequence[str], tokens: Sequence[tuple[int, Extent]]) -> list[str]:
    """Return the parts of the passages that some tokens in a row stand for."""
    bounds: dict[int, Extent] = {}
    for number, place in tokens:
        first = bounds.get(number, place)
        bounds[number] = Extent(first.start, place.end)
    return [passages[number][start:end] for number, (start, end) in bounds.items()]


def _cut(text: str, least: int, most: int) -> int:
    """Return where to cut between two places: the last end of a sentence, else of a word."""
    for pattern in (_END, _SPACE):
        ends = [end.end() for end in pattern.finditer(text, least, most)]
        if ends:
            return ends[-1]
    return most


def rows_of(cut: Iterable[list[TokenizedPiece] | SpanlabError]) -> list[TokenWindow]:
    """Return the rows of texts that were read, in order; those that could not be read have none."""
    return [
        row
        for pieces in cut
        if not isinstance(pieces, SpanlabError)
        for piece in pieces
        for row in piece.rows
    ]

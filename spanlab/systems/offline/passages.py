"""Passages indexed by word, and words copied from them.

If passages have more than ``MOST_WORDS`` words together, only the pieces that match question and
answer best are looked at closely. So an answer costs time in proportion to its own length and a
single pass over the passages, and evidence looks the same to the model whether it comes in one
paragraph or in a thousand.

The model was taught by annotators, who leave no word quite without doubt: in a long answer that
only repeats its passages, hundreds of faint spans would be left. What stands there word for word
is not doubted, and unlike for the features, all words of the passages are looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.systems.offline.words import TokenizedText, TokenRow, blank_marks, read

MOST_WORDS = 2000  # of all passages together; Mu-SHROOM's have 100 to 1,500
_KEPT_WORDS = 600  # of more: the best match does not stand out among many
_SATURATION = 1.2  # BM25's k1
_PIECE = 40  # words; a longer sentence is chosen in pieces
_SHORT = 50_000  # characters; a longer passage is not kept in memory
_ANY = re.compile(r"\S")
BREAK = 3  # the kind of the position between two texts


@dataclass(frozen=True)
class PassageTexts:
    """Texts read word by word, and the 0-based number that each was given under."""

    numbers: tuple[int, ...]
    readings: tuple[TokenizedText, ...]

    @cached_property
    def pieces(self) -> tuple[_Chunk, ...]:
        """The texts cut into pieces, once for all parts of an answer."""
        return tuple(
            _Chunk(number, words, frozenset(reading.forms[words.start : words.stop]))
            for number, reading in enumerate(self.readings)
            for words in _pieces(reading)
        )


class _Chunk(NamedTuple):
    """Words of the text with this number, and the forms among them."""

    number: int
    words: range
    forms: frozenset[str]


def read_passages(texts: Sequence[str]) -> PassageTexts:
    """Read texts, with their marks blanked.

    Returns:
        Those with words in them. A text that comes twice counts once: what is repeated is not
        confirmed.
    """
    given = {text: n for n, text in reversed(list(enumerate(texts))) if _ANY.search(text)}
    numbers = tuple(sorted(given.values()))
    return PassageTexts(numbers, tuple(_read(texts[n]) for n in numbers))


class PassageWords:
    """The words of some texts in one row, with a break after each text.

    Per position: ``text`` is the number of the text among those with words in them, ``word`` the
    number of the word in it (-1 for a break), then the word's form, kind and sentence, and whether
    it begins with a capital.

    Args:
        given: the texts as ``read_passages`` reads them.
        wanted: forms of question and answer, which decide what is kept of long passages.
    """

    def __init__(self, given: PassageTexts, wanted: Collection[str] = ()) -> None:
        self.numbers, self.readings = given.numbers, given.readings
        self.text: list[int] = []
        self.word: list[int] = []
        self.forms: list[str] = []
        self.sentence: list[int] = []
        self.capital: list[bool] = []
        self.kinds: list[int] = []
        total = sum(len(reading) for reading in self.readings)
        chosen = None if total <= MOST_WORDS else _choose(given, frozenset(wanted))
        sentences = 0
        for number, reading in enumerate(self.readings):
            words = range(len(reading)) if chosen is None else chosen[number]
            self.text += [number] * (len(words) + 1)
            self.word += [*words, -1]
            self.forms += [*map(reading.forms.__getitem__, words), "\0"]
            self.sentence += [sentences + reading.sentence[word] for word in words]
            self.capital += [*map(reading.capital, words), False]
            self.kinds += [*map(reading.kinds.__getitem__, words), BREAK]
            sentences += len(reading.sentences)
            self.sentence.append(max(sentences - 1, 0))
        dense: dict[int, int] = {}  # numbers without gaps: a sentence without words needs no room
        self.sentence = [dense.setdefault(number, len(dense)) for number in self.sentence]
        self.n_sentences = self.sentence[-1] + 1 if self.sentence else 1
        self.places: dict[str, list[int]] = defaultdict(list)
        for position, form in enumerate(self.forms):
            self.places[form].append(position)
        self.places.pop("\0", None)

    def __len__(self) -> int:
        """Return the number of positions."""
        return len(self.forms)

    @property
    def empty(self) -> bool:
        """Whether there is no word at all."""
        return not self.places

    def sentence_of(self, position: int) -> tuple[int, int, int]:
        """Return passage number (as given), start and end of the sentence at a position."""
        reading = self.readings[self.text[position]]
        start, end = reading.sentences[reading.sentence[self.word[position]]]
        return self.numbers[self.text[position]], start, end

    def words_at(self, positions: range) -> str:
        """Return the words at positions of one text as they are written."""
        reading = self.readings[self.text[positions.start]]
        first, last = self.word[positions.start], self.word[positions[-1]]
        return reading.text[reading.starts[first] : reading.ends[last]]

    def positions(self, sentence: int) -> range:
        """Return the positions of a sentence."""
        return range(bisect_left(self.sentence, sentence), bisect_right(self.sentence, sentence))

    def row(self) -> TokenRow:
        """Return the word of each position, with a break where some are left out."""
        return TokenRow(self.forms, self.kinds, self.gap)

    def gap(self, position: int) -> str | None:
        """Return the text between the words of two positions, None for a break."""
        if self.text[position + 1 : position + 2] != [self.text[position]]:
            return None
        word = self.word[position]
        if word < 0 or self.word[position + 1] != word + 1:
            return None
        reading = self.readings[self.text[position]]
        return reading.text[reading.ends[word] : reading.starts[word + 1]]


def _choose(given: PassageTexts, wanted: frozenset[str]) -> list[list[int]]:
    """Keep the pieces that match what is wanted best, with their neighbours in the same text.

    A piece is ranked by BM25 (Robertson & Zaragoza 2009) plus half of that of either neighbour:
    "It is 33 metres tall" says nothing without the sentence before.
    """
    pieces = given.pieces
    common = Counter(form for piece in pieces for form in piece.forms & wanted)
    length = sum(len(piece.words) for piece in pieces) / len(pieces)
    worth = np.zeros(len(pieces) + 2)
    for at, piece in enumerate(pieces, start=1):
        weight = (_SATURATION + 1) / (1 + _SATURATION * (0.25 + 0.75 * len(piece.words) / length))
        worth[at] = weight * sum(
            log1p((len(pieces) - common[form] + 0.5) / (common[form] + 0.5))
            for form in sorted(piece.forms & wanted)
        )
    text = np.array([-1, *(piece.number for piece in pieces), -1])
    beside = np.where(text[:-1] == text[1:], 0.5, 0.0)
    score = worth[1:-1] + beside[:-1] * worth[:-2] + beside[1:] * worth[2:]
    chosen: list[list[int]] = [[] for _ in given.readings]
    kept = 0
    for place in np.argsort(-score, kind="stable").tolist():
        piece = pieces[place]
        if kept + len(piece.words) > _KEPT_WORDS:
            break
        kept += len(piece.words)
        chosen[piece.number].extend(piece.words)
    return [sorted(words) for words in chosen]


def _read(text: str) -> TokenizedText:
    return _read_again(text) if len(text) <= _SHORT else read(blank_marks(text))


@lru_cache(maxsize=16)
def _read_again(text: str) -> TokenizedText:
    """Read a passage that several answers may be compared with one after the other."""
    return read(blank_marks(text))


def _pieces(reading: TokenizedText) -> list[range]:
    """Cut a text into its sentences, and sentences into pieces."""
    pieces = []
    first = 0
    for word in range(1, len(reading) + 1):
        ends = word == len(reading) or reading.sentence[word] != reading.sentence[first]
        if ends or word - first == _PIECE:
            pieces.append(range(first, word))
            first = word
    return pieces


_RUN = 8  # words: on Mu-SHROOM Corr falls by .001 from 8 on, by .007 from 5 on; IoU by nothing


class CopiedRuns:
    """What of an answer its passages have word for word: runs of ``_RUN`` words and sentences."""

    def __init__(self, passages: Iterable[TokenizedText]) -> None:
        self._known = frozenset(
            hash(reading.forms[first:last])
            for reading in passages
            for first, last in _runs(reading)
        )

    def words(self, answer: TokenizedText) -> NDArray[np.bool_]:
        """Say of each word of an answer whether it stands in such a run or sentence."""
        is_there = np.zeros(len(answer), dtype=bool)
        for first, last in _runs(answer):
            if hash(answer.forms[first:last]) in self._known:
                is_there[first:last] = True
        return is_there


def _runs(text: TokenizedText) -> Iterator[tuple[int, int]]:
    """Yield the ``[first, last)`` of every run, and of every sentence too short for one."""
    for first in range(len(text) - _RUN + 1):
        yield first, first + _RUN
    first = 0
    for last in range(1, len(text) + 1):
        if last == len(text) or text.sentence[last] != text.sentence[first]:
            if last - first < _RUN:
                yield first, last
            first = last

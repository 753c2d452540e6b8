"""Numbers that the passages give in the place where the answer gives another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spanlab.detectors.offline.index import Index, Match
from spanlab.detectors.offline.normal import readings
from spanlab.detectors.offline.words import Kind, Word

_REACH = 6  # words on either side of a number that make up its place
_PLACES = 8  # occurrences looked at per word; more common words tell no places apart
_KNOWN = 70.0  # a word of the answer counts as standing in a passage from this score on
_ENOUGH = 2  # words that two numbers' places must share; one is enough where it is as close to both
_CLOSE = 2  # words between which only a preposition has room
_YEARS = range(1000, 2100)


class Rival(NamedTuple):
    """The number ``text`` that stands at a position of the index instead of the answer's."""

    position: int
    text: str


class _Vote(NamedTuple):
    weight: float
    voters: int
    close: bool


def rivals(
    words: Sequence[Word], known: Sequence[Match], asked: Sequence[Match], passages: Index
) -> dict[int, Rival]:
    """Find for every number that is not supported the one that stands in its place, if any.

    The words around the answer's number are looked up in the passages; the numbers near them are
    candidates, and each of those words votes for a candidate more strongly the more nearly it
    stands at the same distance. A candidate is of the same sort (a year for a year) and is not
    given elsewhere in the answer's sentence.

    Args:
        words: the answer's words.
        known: how the passages know each of them.
        asked: how the question knows each of them.
        passages: where to look.

    Returns:
        Rivals by the number of the answer's word; empty if there is no contradiction.
    """
    found = {}
    said = _said(words)
    for number, word in enumerate(words):
        if (
            word.kind is not Kind.NUMBER
            or word.function
            or known[number].places
            or asked[number].places
        ):
            continue
        fitting = [
            (vote.weight, -candidate)
            for candidate, vote in _votes(number, words, known, passages).items()
            if (vote.voters >= _ENOUGH or vote.close)
            and _same_sort(word.text, passages.word(candidate).text)
            and said[word.sentence].isdisjoint(readings(passages.word(candidate).text))
        ]
        if fitting:
            best = -max(fitting)[1]
            found[number] = Rival(best, passages.word(best).text)
    return found


def _said(words: Sequence[Word]) -> dict[int, set[str]]:
    """Collect the readings of all the numbers of each sentence."""
    said: dict[int, set[str]] = defaultdict(set)
    for word in words:
        if word.kind is Kind.NUMBER:
            said[word.sentence] |= readings(word.text)
    return said


def _votes(
    number: int, words: Sequence[Word], known: Sequence[Match], passages: Index
) -> dict[int, _Vote]:
    """Let the words around a number vote for the numbers that stand where they stand."""
    votes: dict[int, _Vote] = defaultdict(lambda: _Vote(0.0, 0, False))
    for at in _context(number, words):
        if known[at].score < _KNOWN:
            continue
        for candidate, distance in _numbers_near(known[at].places[:_PLACES], passages):
            weight = 1 / (1 + abs(distance - (number - at)))
            close = abs(distance) <= _CLOSE and distance == number - at
            old = votes[candidate]
            votes[candidate] = _Vote(old.weight + weight, old.voters + 1, old.close or close)
    return votes


def _context(number: int, words: Sequence[Word]) -> Iterator[int]:
    """Content words around a number, in its own sentence."""
    for at in range(max(0, number - _REACH), min(len(words), number + _REACH + 1)):
        word = words[at]
        telling = word.kind is not Kind.NUMBER and not word.function
        if telling and word.sentence == words[number].sentence:
            yield at


def _numbers_near(places: Sequence[int], passages: Index) -> Iterator[tuple[int, int]]:
    """Positions of numbers near the places, with their distance (negative: before)."""
    numbers = passages.numbers
    for place in places:
        low = bisect_left(numbers, place - _REACH)
        for candidate in numbers[low : bisect_right(numbers, place + _REACH)]:
            yield candidate, candidate - place


def _same_sort(one: str, other: str) -> bool:
    return _is_year(one) == _is_year(other)


def _is_year(text: str) -> bool:
    return len(text) == 4 and any(
        reading.isdigit() and int(reading) in _YEARS for reading in readings(text)
    )

"""Neighbouring words joined into spans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spanlab.detectors.offline.words import Word
from spanlab.schema import Interval

_BAND = 0.2  # words of one span differ by no more, so that its one probability speaks for all


class Stretch(NamedTuple):
    """The words ``[first, last]`` of an answer, with one probability for all of them."""

    first: int
    last: int
    prob: float


class _Run(NamedTuple):
    first: int
    last: int


def stretches(words: Sequence[Word], probs: Sequence[float], floor: float) -> list[Stretch]:
    """Join neighbouring words of one sentence that are about equally probable.

    Args:
        words: the answer's words.
        probs: the probability of each, in [0, 1].
        floor: words below this probability are left out.

    Returns:
        Stretches in order, without function words at their ends (and none of function words
        alone); their probability is the mean over their words' characters.
    """
    found = []
    for run in _runs(words, probs, floor):
        telling = [at for at in range(run.first, run.last + 1) if not words[at].function]
        if not telling:
            continue
        first, last = telling[0], telling[-1]
        inside = range(first, last + 1)
        lengths = [words[at].end - words[at].start for at in inside]
        total = sum(probs[at] * length for at, length in zip(inside, lengths, strict=True))
        found.append(Stretch(first, last, round(total / sum(lengths), 3)))
    return found


def decided(words: Sequence[Word], probs: Sequence[float], floor: float) -> tuple[Interval, ...]:
    """Return the characters of all words from ``floor`` on, with the gaps between neighbours."""
    found: list[Interval] = []
    first: int | None = None
    for at, prob in enumerate(probs):
        if prob < floor:
            first = None
            continue
        if first is None:
            first = at
            found.append(Interval(start=words[at].start, end=words[at].end))
        else:
            found[-1] = Interval(start=words[first].start, end=words[at].end)
    return tuple(found)


def _runs(words: Sequence[Word], probs: Sequence[float], floor: float) -> Iterator[_Run]:
    first: int | None = None
    low = high = 0.0
    for at, prob in enumerate(probs):
        if first is not None:
            low, high = min(low, prob), max(high, prob)
            same = words[at].sentence == words[first].sentence
            if not same or prob < floor or high - low > _BAND:
                yield _Run(first, at - 1)
                first = None
        if first is None and prob >= floor:
            first, low, high = at, prob, prob
    if first is not None:
        yield _Run(first, len(probs) - 1)

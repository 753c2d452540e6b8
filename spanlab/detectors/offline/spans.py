"""Neighbouring words joined into spans."""

from __future__ import annotations

import math
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
    for first, last in _runs(words, probs, floor, _BAND):
        inside = range(first, last + 1)
        lengths = [words[at].end - words[at].start for at in inside]
        total = sum(probs[at] * length for at, length in zip(inside, lengths, strict=True))
        found.append(Stretch(first, last, round(total / sum(lengths), 3)))
    return found


def decided(words: Sequence[Word], probs: Sequence[float], floor: float) -> tuple[Interval, ...]:
    """Return the characters of all stretches, with the gaps between neighbouring ones."""
    runs = _runs(words, probs, floor, math.inf)
    return tuple(Interval(start=words[run.first].start, end=words[run.last].end) for run in runs)


def _runs(
    words: Sequence[Word], probs: Sequence[float], floor: float, band: float
) -> Iterator[_Run]:
    """Yield runs of words of one sentence from ``floor`` on, function words at the ends cut off."""
    first: int | None = None
    low = high = 0.0
    for at, prob in enumerate(probs):
        if first is not None:
            low, high = min(low, prob), max(high, prob)
            same = words[at].sentence == words[first].sentence
            if not same or prob < floor or high - low > band:
                yield from _trimmed(words, first, at - 1)
                first = None
        if first is None and prob >= floor:
            first, low, high = at, prob, prob
    if first is not None:
        yield from _trimmed(words, first, len(probs) - 1)


def _trimmed(words: Sequence[Word], first: int, last: int) -> Iterator[_Run]:
    telling = [at for at in range(first, last + 1) if not words[at].function]
    if telling:
        yield _Run(telling[0], telling[-1])

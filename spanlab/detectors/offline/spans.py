"""Probabilities of words to spans; words as units.

The model rates word by word. But nobody marks half a name, or one sign of a Chinese one; and the
"and" between two wrong names is marked with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.features import AnswerFeatures
from spanlab.detectors.offline.links import Column
from spanlab.detectors.offline.words import TokenizedText, WordKind

FLOOR = 0.35  # hallucinated from this probability on …
SHARE = 0.52  # … and from this share of the answer's most probable word
_ANYONE = 0.3  # other words are spans where this probable that anyone marks them at all, …
_ANYONE_SHARE = 0.4  # … from this share of the answer's likeliest word
_QUIET = 0.2  # … and this share of its most probable word on
_FAINT = 0.2  # an answer all of whose words are below this probability is correct: no spans
_BAND = 0.05  # words of one span differ by no more, so that its one probability speaks for all


class WordStretch(NamedTuple):
    """The words ``[first, last]``, their characters ``[start, end)``, and how they are rated."""

    first: int
    last: int
    start: int
    end: int
    prob: float
    hard: bool


def stretches(words: TokenizedText, probs: Column, anyone: Column) -> list[WordStretch]:
    """Join neighbouring words that are about equally probable.

    Characters between two words of a stretch belong to it, those between two stretches to the
    less probable one, but no stretch begins with punctuation. ``probs`` and ``anyone`` are the
    ``WordProbabilities``, in [0, 1].

    Returns:
        Stretches in order, without overlap, none in an answer that seems correct. Their
        probability is the mean over their words' characters, ``hard`` whether all of them are
        taken for hallucinated.
    """
    top = float(probs.max(initial=0.0))
    if top < _FAINT:
        return []
    hard = probs >= max(FLOOR, SHARE * top)
    likely = anyone >= max(_ANYONE, _ANYONE_SHARE * float(anyone.max()))
    loud = hard | (likely & (probs >= _QUIET * top))
    values, is_hard = probs.tolist(), hard.tolist()
    stretches_found = [
        WordStretch(
            first,
            last,
            words.starts[first],
            words.ends[last],
            _mean(words, values, first, last),
            is_hard[first],
        )
        for first, last in _runs(values, is_hard, loud.tolist())
    ]
    return _with_gaps(words.text, stretches_found)


def decided(rated: list[WordStretch]) -> list[tuple[int, int]]:
    """Return the hallucinated characters: hard stretches, touching ones joined."""
    merged: list[tuple[int, int]] = []
    last: int | None = None
    for stretch in (stretch for stretch in rated if stretch.hard):
        if last == stretch.first - 1:
            merged[-1] = (merged[-1][0], stretch.end)
        else:
            merged.append((stretch.start, stretch.end))
        last = stretch.last
    return merged


def _runs(probs: list[float], hard: list[bool], loud: list[bool]) -> Iterator[tuple[int, int]]:
    first: int | None = None
    low = high = 0.0
    for at, prob in enumerate(probs):
        low, high = min(low, prob), max(high, prob)
        apart = first is not None and (hard[at] != hard[first] or high - low > _BAND)
        if first is not None and (not loud[at] or apart):
            yield first, at - 1
            first = None
        if first is None and loud[at]:
            first, low, high = at, prob, prob
    if first is not None:
        yield first, len(probs) - 1


def _mean(words: TokenizedText, probs: Sequence[float], first: int, last: int) -> float:
    inside = range(first, last + 1)
    lengths = [words.ends[at] - words.starts[at] for at in inside]
    total = sum(probs[at] * length for at, length in zip(inside, lengths, strict=True))
    return round(total / sum(lengths), 3)


def _with_gaps(text: str, rated: list[WordStretch]) -> list[WordStretch]:
    """Let the less probable of two touching stretches reach up to the other."""
    joined: list[WordStretch] = []
    for stretch in rated:
        before = joined[-1] if joined else None
        if before is None or before.last != stretch.first - 1:
            joined.append(stretch)
        elif before.prob < stretch.prob:
            joined[-1] = before._replace(end=stretch.start)
            joined.append(stretch)
        elif text[before.end : stretch.start].isspace():
            joined.append(stretch._replace(start=before.end))
        else:
            joined.append(stretch)
    return joined


_CONFIRMED = 0.5  # what is left of the probability of a part of a date that stands in the passages
_WORD = 4  # signs that may be one word


def together(described: AnswerFeatures, probs: Column) -> Column:
    """Give the words of a unit one probability.

    A part of a date that the passages have is doubted less, whatever is beside it. Units
    are runs of words that neither passages nor question know: capital words, whose mean
    counts, and signs of a script without spaces. A short run of signs is a word, whose most
    probable sign counts; a long one is several, and the mean counts. A stop word between two
    units is as probable as the less probable of them; between two runs of signs it may well be a
    part of a word, so that both are one unit, as probable as the more probable of them.

    ``probs`` in [0, 1] are not changed in place.
    """
    probs = probs.copy()
    answer, unknown = described.answer, described.known == 0
    lengths = np.array(answer.ends, dtype=np.float64) - np.array(answer.starts, dtype=np.float64)
    probs[sorted(described.confirmed)] *= _CONFIRMED
    before: tuple[int, int] | None = None
    for first, last in _units(answer, unknown):
        inside = slice(first, last + 1)
        signs = answer.kinds[first] is WordKind.SIGN
        word = signs and last - first < _WORD
        mean = np.average(probs[inside], weights=lengths[inside])
        probs[inside] = probs[inside].max() if word else mean
        if before is not None and first == before[1] + 2 and described.stop[first - 1]:
            if signs and answer.kinds[before[1]] is WordKind.SIGN and _touch(answer, first):
                probs[before[0] : last + 1] = max(probs[before[0]], probs[last])
            else:
                probs[first - 1] = max(probs[first - 1], min(probs[before[1]], probs[first]))
        before = first, last
    return probs


def _units(answer: TokenizedText, unknown: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield first and last word of every unit of at least two words."""
    first = 0
    for at in range(1, len(answer) + 1):
        if at < len(answer) and unknown[at] and unknown[at - 1] and _belong(answer, at):
            continue
        if at - first > 1:
            yield first, at - 1
        first = at


def _belong(answer: TokenizedText, at: int) -> bool:
    """Return whether a word and the one before are parts of one name or of one word."""
    between = answer.text[answer.ends[at - 1] : answer.starts[at]]
    if answer.kinds[at] is WordKind.SIGN:
        return answer.kinds[at - 1] is WordKind.SIGN and not between
    named = answer.capital(at) and answer.capital(at - 1)
    return named and between in (" ", "-", "’", "'")


def _touch(answer: TokenizedText, first: int) -> bool:
    """Return whether three words have nothing between them."""
    return answer.ends[first - 2] == answer.starts[first - 1] and (
        answer.ends[first - 1] == answer.starts[first]
    )

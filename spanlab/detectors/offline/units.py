"""Units of words that get one probability: a name, a word of several signs, and their joints.

The model rates word by word. But nobody marks half a name, or one sign of a Chinese one; and the
"and" between two wrong names is marked with them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.features import Described
from spanlab.detectors.offline.links import Column
from spanlab.detectors.offline.words import Reading, WordKind

_CONFIRMED = 0.5  # what is left of the probability of a part of a date that stands in the passages
_WORD = 4  # signs that may be one word


def together(described: Described, probs: Column) -> Column:
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


def _units(answer: Reading, unknown: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield first and last word of every unit of at least two words."""
    first = 0
    for at in range(1, len(answer) + 1):
        if at < len(answer) and unknown[at] and unknown[at - 1] and _belong(answer, at):
            continue
        if at - first > 1:
            yield first, at - 1
        first = at


def _belong(answer: Reading, at: int) -> bool:
    """Return whether a word and the one before are parts of one name or of one word."""
    between = answer.text[answer.ends[at - 1] : answer.starts[at]]
    if answer.kinds[at] is WordKind.SIGN:
        return answer.kinds[at - 1] is WordKind.SIGN and not between
    named = answer.capital(at) and answer.capital(at - 1)
    return named and between in (" ", "-", "’", "'")


def _touch(answer: Reading, first: int) -> bool:
    """Return whether three words have nothing between them."""
    return answer.ends[first - 2] == answer.starts[first - 1] and (
        answer.ends[first - 1] == answer.starts[first]
    )

"""Words that an answer has from its passages word for word.

The model was taught by annotators, who leave no word quite without doubt: in a long answer that
only repeats its passages, hundreds of faint spans would be left. What stands there word for word
is not doubted, and unlike for the features, all words of the passages are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.words import Reading

_RUN = 8  # words: on Mu-SHROOM Corr falls by .001 from 8 on, by .007 from 5 on; IoU by nothing


class Passed:
    """What of an answer its passages have word for word: runs of ``_RUN`` words and sentences."""

    def __init__(self, passages: Iterable[Reading]) -> None:
        self._known = frozenset(
            hash(reading.forms[first:last])
            for reading in passages
            for first, last in _runs(reading)
        )

    def words(self, answer: Reading) -> NDArray[np.bool_]:
        """Say of each word of an answer whether it stands in such a run or sentence."""
        found = np.zeros(len(answer), dtype=bool)
        for first, last in _runs(answer):
            if hash(answer.forms[first:last]) in self._known:
                found[first:last] = True
        return found


def _runs(text: Reading) -> Iterator[tuple[int, int]]:
    """Yield the ``[first, last)`` of every run, and of every sentence too short for one."""
    for first in range(len(text) - _RUN + 1):
        yield first, first + _RUN
    first = 0
    for last in range(1, len(text) + 1):
        if last == len(text) or text.sentence[last] != text.sentence[first]:
            if last - first < _RUN:
                yield first, last
            first = last

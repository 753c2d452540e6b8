"""Probabilities against the shares of annotators, and labels that are confused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from spanlab.extents import Extent, coverage
from spanlab.labels import SoftLabel
from spanlab.schema import FrozenModel

_BINS = 10


class CalibrationBin(FrozenModel):
    """The ``characters`` whose probability is in (``low``, ``high``]; the first bin is 0 alone.

    ``prob`` is their mean probability, ``share`` the mean share of people who marked them.
    """

    low: float
    high: float
    characters: int
    prob: float
    share: float


class CalibrationReport(FrozenModel):
    """The bins that have characters; ``error`` is the expected calibration error.

    That is the mean distance between a bin's probability and its share of people, weighted by
    characters (Guo et al. 2017, "On Calibration of Modern Neural Networks"): 0 is perfect, 1 worst.
    """

    bins: tuple[CalibrationBin, ...]
    error: float


class CalibrationSums:
    """Running sums of one annotator's probabilities against shares of people, item by item."""

    def __init__(self) -> None:
        self._characters = [0] * (_BINS + 1)
        self._probs = [0.0] * (_BINS + 1)
        self._shares = [0.0] * (_BINS + 1)

    def add(self, probs: Sequence[SoftLabel], shares: Sequence[SoftLabel], length: int) -> None:
        """Add an item whose answer has ``length`` characters, both lists flattened."""
        for size, prob, share in _stretches(probs, shares, length):
            at = ceil(prob * _BINS - 1e-9)
            self._characters[at] += size
            self._probs[at] += prob * size
            self._shares[at] += share * size

    def result(self) -> CalibrationReport | None:
        """Return the calibration; None where no characters were added."""
        total = sum(self._characters)
        if not total:
            return None
        bins = tuple(
            CalibrationBin(
                low=max(at - 1, 0) / _BINS,
                high=at / _BINS,
                characters=size,
                prob=self._probs[at] / size,
                share=self._shares[at] / size,
            )
            for at, size in enumerate(self._characters)
            if size
        )
        error = sum(abs(part.prob - part.share) * part.characters for part in bins) / total
        return CalibrationReport(bins=bins, error=error)


def shares(raters: Sequence[Sequence[Extent]]) -> list[SoftLabel]:
    """Return the share of raters that mark each stretch, given merged marks of at least one."""
    weights = [1] * len(raters)
    return [
        SoftLabel(start, end, count / len(raters))
        for start, end, count in coverage(raters, weights)
    ]


def _stretches(
    probs: Sequence[SoftLabel], shares: Sequence[SoftLabel], length: int
) -> Iterator[tuple[int, float, float]]:
    """Yield how many characters have which probability and share, in text order."""
    lists, values = (probs, shares), [0.0, 0.0]
    events = sorted(
        (place, which, value)
        for which, softs in enumerate(lists)
        for soft in softs
        for place, value in ((soft.end, 0.0), (soft.start, soft.prob))
    )
    before = 0
    for place, which, value in events:
        if place > before:
            yield place - before, values[0], values[1]
            before = place
        values[which] = value
    if length > before:
        yield length - before, values[0], values[1]

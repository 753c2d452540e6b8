"""Intervals of many items laid end to end on one axis, so that numpy sees them all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from spanlab.labels import Extent, Soft

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Track:
    """Intervals as columns; ``owner`` says which list each comes from, counted from 0.

    Offsets are on the common axis: an item's first character stands where the characters of all
    items before it have ended. ``prob`` is 1 for hard labels.
    """

    lists: int
    owner: Ints
    start: Ints
    end: Ints
    prob: Floats

    @classmethod
    def of(cls, lists: Sequence[Sequence[Extent] | Sequence[Soft]], bases: Ints) -> Track:
        """Lay out ``lists``, each beginning at its place in ``bases``."""
        counts = np.fromiter(map(len, lists), np.int64, len(lists))
        owner = np.repeat(np.arange(len(lists)), counts)
        numbers = np.fromiter(chain.from_iterable(chain.from_iterable(lists)), np.float64)
        columns = numbers.reshape(len(owner), -1) if len(owner) else np.empty((0, 2))
        start = columns[:, 0].astype(np.int64) + bases[owner]
        end = columns[:, 1].astype(np.int64) + bases[owner]
        prob = columns[:, 2] if columns.shape[1] > 2 else np.ones(len(owner))
        return cls(lists=len(lists), owner=owner, start=start, end=end, prob=prob)

    @property
    def size(self) -> Ints:
        """Characters per interval."""
        return self.end - self.start

    def sums(self, values: Ints | Floats) -> Floats:
        """Sum ``values``, one per interval, over each list; exact for whole numbers to 2**53."""
        sums = np.bincount(self.owner, weights=values, minlength=self.lists)
        return sums.astype(np.float64, copy=False)

    def within(self, other: Track, weights: Ints) -> Ints:
        """Return per own interval the characters that ``other`` covers, each times its weight.

        The intervals of ``other`` are in order and do not overlap; each has one of ``weights``.
        """
        if not len(other.start):
            return np.zeros_like(self.start)
        through = np.concatenate(([0], np.cumsum(other.size * weights)))

        def before(place: Ints) -> Ints:
            begun = np.searchsorted(other.start, place)
            last = np.maximum(begun - 1, 0)
            beyond = np.where(begun > 0, np.maximum(other.end[last] - place, 0), 0)
            result: Ints = through[begun] - beyond * weights[last]
            return result

        return before(self.end) - before(self.start)

    def common(self, other: Track) -> Floats:
        """Return per own list how many of its characters ``other`` covers."""
        return self.sums(self.within(other, np.ones_like(other.start)))

"""Spearman correlation of piecewise constant functions, without looking at characters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spanlab.scorers._track import Floats, Ints, Track

_DIGITS = 8  # the shared task's scorer calls a vector constant when it is so after rounding


def spearman(x: Track, y: Track, lengths: Ints) -> Floats:
    """Return Spearman's rank correlation of two soft labellings over all characters of each item.

    Characters outside every interval have probability 0; ties share their mean rank. 1.0 means
    that both order all characters alike, 0.0 that the orders have nothing to do with each other,
    -1.0 that one is the other reversed. Where a labelling gives all characters the same
    probability (after rounding to 8 digits) the correlation is undefined, and the shared task's
    rule holds: 1.0 if both are constant, whatever their values, else 0.0. An empty answer counts
    as constant, so it scores 1.0.

    Ranks are counted in whole numbers (twice the distance from the mean rank), so only the last
    division and square root round. ``x`` and ``y`` have flattened soft labels, ``lengths`` each
    item's number of characters.
    """
    x_ranks, y_ranks = _ranks(x, lengths), _ranks(y, lengths)
    # Ranks sum to 0, so with a and b the ranks of probability 0:
    # sum(rx * ry) = sum((rx - a) * (ry - b)) - n * a * b, whose terms are 0 outside common spans.
    products = x.sums(x_ranks.above_zero * x.within(y, y_ranks.above_zero))
    covariance = products - lengths * (x_ranks.zero.astype(np.float64) * y_ranks.zero)
    undefined = x_ranks.constant | y_ranks.constant
    spread = np.sqrt(np.where(undefined, 1, x_ranks.variance * y_ranks.variance))
    both = (x_ranks.constant & y_ranks.constant).astype(np.float64)
    return np.where(undefined, both, np.clip(covariance / spread, -1.0, 1.0))


@dataclass(frozen=True)
class _Ranks:
    """Ranks as twice their distance from the mean of the item's ranks."""

    above_zero: Ints  # per interval: its rank minus that of probability 0
    zero: Ints  # per item: the rank of probability 0
    variance: Floats  # per item: the sum of the squares over its characters
    constant: NDArray[np.bool_]  # per item


def _ranks(track: Track, lengths: Ints) -> _Ranks:
    """Rank the groups of equal probability: an item's unmarked characters are its first group."""
    items = np.arange(len(lengths))
    unmarked = lengths - track.sums(track.size).astype(np.int64)
    owner = np.concatenate((items, track.owner))
    prob = np.concatenate((np.zeros(len(items)), track.prob))
    order = np.lexsort((prob, owner))
    owner, prob = owner[order], prob[order]
    size = np.concatenate((unmarked, track.size))[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (prob[1:] != prob[:-1])
    group = np.cumsum(begins) - 1
    sizes = np.add.reduceat(size, np.flatnonzero(begins))
    owner, prob = owner[begins], prob[begins]
    before = np.cumsum(lengths) - lengths  # characters of the items before
    rank = 2 * (np.cumsum(sizes) - sizes - before[owner]) + sizes - lengths[owner]
    first = np.searchsorted(owner, items)
    last = np.searchsorted(owner, items, side="right") - 1
    of_entry = np.empty_like(rank, shape=len(order))
    of_entry[order] = rank[group]
    squares = np.bincount(owner, weights=sizes * rank.astype(np.float64) ** 2)
    lowest = prob[np.where(sizes[first] > 0, first, np.minimum(first + 1, last))]
    return _Ranks(
        above_zero=of_entry[len(items) :] - rank[first][track.owner],
        zero=rank[first],
        variance=squares.astype(np.float64, copy=False),
        constant=np.round(lowest, _DIGITS) == np.round(prob[last], _DIGITS),
    )

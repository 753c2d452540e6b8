"""Which items people review, so that a rate follows from few of them: samples with known odds.

Sequential Poisson sampling (Ohlsson, "Sequential Poisson Sampling", Journal of Official Statistics
14, 1998) with permanent random numbers: every item has a number u that follows from the seed and
its own key, and a size p. Items are reviewed by rising u / p. Any beginning of n items of that
order is a sample in which an item is with a probability of about min(1, n p / Σp), so that one may
stop, or go on, at any time; and samples of two datasets with the same keys and seed have the same
items.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from math import atanh, ceil, sqrt, tanh
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_SURE: Final = 0.5  # of the reviews are spread evenly where others go to the detector's doubts
_Z: Final = NormalDist().inv_cdf(0.975)


def random_numbers(keys: Sequence[str], seed: int) -> Array:
    """Return a number in (0, 1) for each key: always the same one for the same seed."""
    digests = [sha256(f"{seed}\0{key}".encode()).digest()[:8] for key in keys]
    return np.array([(int.from_bytes(digest) + 0.5) / 2**64 for digest in digests])


def uncertainty_sizes(f: Array) -> Array:
    """Return how large each item counts: by √(f (1 - f)), half of it spread evenly.

    Zrnic & Candès, "Active Statistical Inference" (2024), section 4, mix with even odds, too: an
    item that the detector is sure of is still reviewed sometimes.

    Args:
        f: what the detector says of each item, in [0, 1].
    """
    doubt = np.sqrt(np.clip(f * (1 - f), 0, None))
    if not doubt.any():
        return np.ones(len(f))
    return np.asarray(_SURE + (1 - _SURE) * doubt / doubt.mean())


def length_sizes(size: Array) -> Array:
    """Return how large each item counts where a ratio of characters is measured: by √length.

    Long answers carry such a ratio. Drawn evenly they are missed too often, and the interval holds
    the truth less often than it says; in full proportion to their length short ones would be. The
    root lies between, and its intervals are narrower, too (`bench_rates`).

    Args:
        size: characters of each answer, at least 0.
    """
    roots = np.sqrt(np.maximum(size, 1))
    return np.asarray(roots / roots.mean())


def review_order(u: Array, p: Array, strata: Sequence[str] | None = None) -> NDArray[np.intp]:
    """Return the items' places in the order of review.

    Args:
        u: the permanent random numbers.
        p: the sizes; all the same for even odds.
        strata: the group of each item; every beginning then has of each its share of the items.
    """
    ranks = u / p
    if strata is not None:
        names = np.array(strata)
        shares = np.empty(len(u))
        for name in np.unique(names):
            (within,) = np.nonzero(names == name)
            place = np.argsort(np.argsort(ranks[within], kind="stable"))
            # Between the steps of its own group, so that groups take turns in chance order.
            shares[within] = (place + ranks[within][place.argmin()]) / len(within)
        ranks = shares
    return np.argsort(ranks, kind="stable")


def inclusion_probabilities(p: Array, n: int) -> Array:
    """Return the probability of each item to be among the first n: min(1, c p), n in sum."""
    if n >= len(p):
        return np.ones(len(p))
    certain = np.zeros(len(p), dtype=bool)
    while True:
        pi = np.where(certain, 1.0, (n - certain.sum()) * p / max(p[~certain].sum(), 1e-300))
        if not (over := (pi > 1) & ~certain).any():
            return pi
        certain |= over


def cautious_rho(rho: float, n: int) -> float:
    """Return what a correlation found in n reviews is at least, with 90 %: by Fisher's z.

    After a pilot of 40 the correlation is often found too high, and a plan by it is too small.
    """
    if n < 4:
        return 0.0
    z = atanh(min(max(rho, 0.0), 0.999)) - NormalDist().inv_cdf(0.9) / sqrt(n - 3)
    return tanh(max(z, 0.0))


def reviews_for(half_width: float, rate: float, rho: float = 0.0, *, items: int = 0) -> int:
    """Return about how many reviews an interval of ± ``half_width`` takes.

    Args:
        half_width: of the 95 % interval, in (0, 1).
        rate: a guess, or what a pilot found.
        rho: the correlation of the detector's marks with people's, 0 if it is not known.
        items: how many there are in all, 0 for a rate of answers like these.
    """
    rate = min(max(rate, half_width / 2, 0.005), 0.995)
    n = _Z**2 * rate * (1 - rate) * (1 - rho**2) / half_width**2
    n = n / (1 + n / items) if items else n
    return max(ceil(n), 10)


def reviews_for_difference(
    difference: float, rate: float, rho: float = 0.0, *, power: float = 0.9, items: int = 0
) -> int:
    """Return how many reviews of each of two sides show a difference of rates of answers like them.

    Args:
        difference: that is to be found, such as .05.
        rate: of the lower side.
        rho: the correlation of the detector's marks with people's.
        power: how often it is to be found, by a 95 % interval that does not hold 0.
        items: how many each side has in all, 0 for as many as are needed.

    Returns:
        The reviews; more than ``items`` where so many answers, all reviewed, cannot show it.
    """
    z = _Z + NormalDist().inv_cdf(power)
    spread = sum(side * (1 - side) for side in (rate, min(rate + difference, 1)))
    wanted = difference**2 / z**2 / 1.1  # λ and the spread are estimated, too
    by_chance = spread / items if items else 0.0  # which answers there are
    if by_chance >= wanted:
        return ceil(spread / wanted)
    unread = spread * (1 - rho**2)
    return max(ceil(unread / (wanted - by_chance + (unread / items if items else 0.0))), 10)

"""Wilson's interval of a rate, quantiles of Student's t, and the variance of clusters."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def wilson(rate: Array, n: Array, df: float | None = None) -> tuple[Array, Array]:
    """Return Wilson's interval for a rate of n reviews, its quantile that of t, or normal."""
    z2 = (NormalDist().inv_cdf(0.975) if df is None else t_quantile(df)) ** 2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def t_quantile(df: float, p: float = 0.975) -> float:
    """Return a quantile of Student's t, exact for 1 and 2 degrees of freedom.

    Others are by Hill's expansion (Abramowitz & Stegun, 26.7.5); below 1 it is that of 1.
    """
    if df < 2:
        return float(np.tan(np.pi * (p - 0.5)))
    if df == 2:
        return float((2 * p - 1) * np.sqrt(2 / (4 * p * (1 - p))))
    z, v = NormalDist().inv_cdf(p), df
    return float(
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )


def cluster_variance(parts: Array, codes: NDArray[np.int_]) -> tuple[Array, Array]:
    """Return the variance of an estimate whose parts come in clusters, and their number.

    Cochran, Sampling Techniques (1977), 9A: G / (G - 1) times the sum of the squared sums of the
    clusters' parts. One cluster says nothing of others: then the variance is 0.

    Args:
        parts: what each item adds to the estimate beyond the mean (items, or items × columns); NaN
            where it has no part.
        codes: the cluster of each item.
    """
    _, places = np.unique(codes, return_inverse=True)
    sums = np.zeros((places.max(initial=-1) + 1, *parts.shape[1:]))
    np.add.at(sums, places, np.nan_to_num(parts))
    present = np.zeros(sums.shape)
    np.add.at(present, places, (~np.isnan(parts)).astype(float))
    number = np.asarray((present > 0).sum(0))
    return np.square(sums).sum(0) * number / np.maximum(number - 1, 1), number


def unseen_clusters(shares: Array, codes: NDArray[np.int_]) -> float:
    """Return what half a cluster of findings that was not drawn adds to the variance of a rate.

    Where one answer to a question is wrong the others may be, too: a rate near 0 or 1 of few
    clusters says more than they know without it. 0 for items that have nothing in common.

    Args:
        shares: of each item in the denominator; they sum to 1.
        codes: the cluster of each item.
    """
    _, places = np.unique(codes, return_inverse=True)
    together = np.bincount(places, shares)
    return float(np.square(np.square(together).sum()) - np.square(np.square(shares).sum())) / 4


def count_rate(counts: Array, sizes: Array, codes: NDArray[np.int_]) -> tuple[float, float, float]:
    """Return how many events there are for each unit of size, with the ends of its 95 % interval.

    Byar's interval of a Poisson count (Breslow & Day, Statistical Methods in Cancer Research II,
    1987, 2.3), for the number of events that says as much as these do: fewer where they come
    together, in an item or in a cluster. None at all is no proof that there are none.

    Args:
        counts: the events of each item, which may be means.
        sizes: of each item, above 0 in all.
        codes: the cluster of each item.
    """
    total, size = float(counts.sum()), float(sizes.sum())
    rate = total / size
    variance, number = cluster_variance((counts - rate * sizes) / size, codes)
    events, t = total, NormalDist().inv_cdf(0.975)
    if rate**2 < total * float(variance):
        events, t = rate**2 / float(variance), t_quantile(int(number) - 1)
    more = events + 1
    high = (1 - 1 / (9 * more) + t / (3 * np.sqrt(more))) ** 3 * more
    if not events:
        return 0.0, 0.0, high / size
    low = max(1 - 1 / (9 * events) - t / (3 * np.sqrt(events)), 0.0) ** 3
    return rate, rate * low, rate * high / events

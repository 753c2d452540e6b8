"""Rates from few reviews and a detector's marks on all items: prediction-powered inference.

Angelopoulos et al., "Prediction-Powered Inference" (2023); Angelopoulos, Duchi & Zrnic, "PPI++"
(2023), for the power-tuned weight λ; Zrnic & Candès, "Active Statistical Inference" (2024), for
reviews with unequal probabilities π. Y is what people said of the n reviewed items, f what the
detector said of them, F of all N.

Rates are ratios ΣY / ΣX, weighted by 1/π (Hájek): X is 1 for answers, the number of characters or
claims else. Intervals are Wilson's with the effective number of reviews R (1 - R) / V that the
variance V amounts to (Korn & Graubard, Survey Methodology 24, 1998) and the quantile of t instead
of z: near 0 and 1 they cover, and no finding in the sample is no proof that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.scoring.intervals import Array, t_quantile, unseen_clusters, wilson

METHOD: Final = (
    "prediction-powered (PPI++, λ tuned; Hájek weights), variance by clusters; Wilson interval "
    "with the effective number of reviews and Student's t"
)


@dataclass(frozen=True)
class ReviewedSample:
    """Reviewed items; every array may have draws before its last axis, which has the items.

    ``pi`` are the inclusion probabilities, ``x`` the denominators of people, ``x_detector`` those
    of the detector (None for 1 each); ``strata`` are numbers of groups that were drawn apart, and
    ``clusters`` those of items that have something in common (None where none have).
    """

    y: Array
    f: Array
    pi: Array
    x: Array | None = None
    x_detector: Array | None = None
    strata: NDArray[np.int_] | None = None
    clusters: NDArray[np.int_] | None = None


class PeopleSpread(NamedTuple):
    """The variance of the mean of reviewers' own rates, and how many they are.

    ``common`` says that all reviewed the same items; else it has the variance of items in it.
    """

    variance: float
    n: int
    common: bool


class Population(NamedTuple):
    """All items: what the detector says of each, of how much, and their clusters."""

    f: Array
    x: Array
    clusters: NDArray[np.int_]


class RateEstimate(NamedTuple):
    """A rate with its 95 % interval; arrays where there were draws.

    ``n_effective`` is the number of even reviews alone that would say as much, ``lam`` the weight
    of the detector (0 where it did not help), ``rho`` its correlation with people.
    """

    rate: Array
    low: Array
    high: Array
    variance: Array
    n_effective: Array
    lam: Array
    rho: Array


def estimate_rate(  # noqa: PLR0915 - one formula, from top to bottom
    sample: ReviewedSample,
    detector_rate: float | Array | None,
    *,
    items: int,
    superpopulation: bool = False,
    people: PeopleSpread | None = None,
    population: Population | None = None,
) -> RateEstimate:
    """Return the rate of all items, or of items like these, from those reviewed.

    The detector's weight λ is shrunk by m / (m + 1), and the variance grown by 1 + 1 / 2m, where m
    is the effective number of findings: with a handful of them, λ follows chance.

    Args:
        sample: of one dataset, or of one group of it.
        detector_rate: the share that the detector marked in all items; None for reviews alone.
        items: how many there are in all.
        superpopulation: whether the interval is for answers like these instead of for these.
        people: how far the reviewers differ; of answers like these, as other people would mark
            them. None for one person, of whom nothing follows for others.
        population: all items; needed for answers like these if the sample has clusters and the
            detector counts. These answers are drawn one by one, so that clusters change nothing.

    Returns:
        Never wider than reviews alone by more than what chance in λ costs: where the detector's
        marks do not narrow the interval of this sample, it is that of reviews alone.
    """
    n = sample.y.shape[-1]
    w = 1 / sample.pi
    x = np.ones_like(sample.y) if sample.x is None else sample.x
    x_f = np.ones_like(sample.y) if sample.x_detector is None else sample.x_detector
    rate, a = _linearised(w, sample.y, x)
    q = w * w * (1 - sample.pi)
    is_ratio = bool(np.ptp(x) > 0)
    if is_ratio:  # as the jackknife has it: long answers pull the ratio to themselves
        q = q / np.square(1 - np.minimum(_divided(w * x, _sum(w * x)[..., None]), 0.9))
    a_within = _within(a, w, sample.strata)
    # Half an unsampled positive at the largest weight: zero when all weights are equal.
    unseen = 0.25 * (w.max(-1) ** 2 - np.square(w).mean(-1)) / w.sum(-1) ** 2
    alone = _sum(q * a_within**2) * n / max(n - 1, 1) + unseen
    s2 = _sum(w * a**2) * w.sum(-1) * n / max(n - 1, 1) / max(items, 1)
    theta, variance = rate, alone
    lam = rho = np.zeros_like(rate)
    if detector_rate is not None and n > 2:
        r_f, b = _linearised(w, sample.f, x_f)
        b_within = _within(b, w, sample.strata)
        sab, sbb, saa = (_sum(q * c) for c in (a_within * b_within, b_within**2, a_within**2))
        m = np.maximum(np.minimum(_findings(w * sample.y), _findings(w * (x - sample.y))), 1e-9)
        tuned = np.clip(_divided(sab, sbb), 0, None) * m / (m + 1)
        rho = _divided(sab, np.sqrt(sbb * saa))
        pull = np.ones_like(b_within)
        if is_ratio:
            pull = 1 - np.minimum(_divided(q * b_within**2, sbb[..., None]), 0.5)
        residual = _sum(q * ((a_within - tuned[..., None] * b_within) / pull) ** 2)
        corrected = residual * n / (n - 2) * (1 + 0.5 / np.maximum(m, 1)) + unseen
        corrected = corrected + _undrawn(n, items) * np.square(x).mean(-1) / x.mean(-1) ** 2
        moved = rate + tuned * (np.asarray(detector_rate) - r_f)
        better = (corrected < alone) & (moved > 0) & (moved < 1)
        theta, variance = np.where(better, moved, rate), np.where(better, corrected, alone)
        lam = np.where(better, tuned, 0.0)
    if superpopulation:
        variance = variance + s2
        alone = alone + s2
    drawn = np.full_like(rate, n / max(1 - n / items, 1e-9) if not superpopulation else n)
    # What the detector saves is counted in reviews: the interval is as wide as its own rate asks.
    n_eff = np.where((rate > 0) & (rate < 1), _divided(rate * (1 - rate), alone), drawn)
    n_eff = np.where((variance > 0) & (alone > 0), n_eff * _divided(alone, variance), n_eff)
    if items <= n and not superpopulation:
        return RateEstimate(rate, rate, rate, np.zeros_like(rate), n_eff, lam, rho)
    df: float = n - 1
    if superpopulation and sample.clusters is not None:
        parts = w * a
        if lam > 0:
            parts = parts - lam * w * _linearised(w, sample.f, x_f)[1]
        together, number = _clustered(parts, sample.clusters, float(lam), population)
        together += _undrawn(n, items) if lam > 0 else 0.0
        # Sizes that differ say already that a cluster may weigh much.
        unseen = unseen_clusters(w * x / (w * x).sum(), sample.clusters) / (2 if is_ratio else 1)
        wider = np.maximum(together, variance) + unseen
        n_eff = np.where(variance > 0, n_eff * _divided(variance, wider), np.minimum(n_eff, number))
        variance, df = wider, number - 1
    if superpopulation and people is not None:
        whole = (
            variance + people.variance if people.common else np.maximum(variance, people.variance)
        )
        n_eff = np.where(variance > 0, n_eff * _divided(variance, whole), n_eff)
        variance, df = whole, _satterthwaite(float(whole), people, df)
    low, high = wilson(theta, np.where(n_eff > 0, n_eff, drawn), df)
    return RateEstimate(theta, low, high, variance, n_eff, lam, rho)


def _satterthwaite(variance: float, people: PeopleSpread, df: float) -> float:
    """Return the degrees of freedom of a variance that is partly of a few people."""
    theirs = min(variance, people.variance)
    parts = (variance - theirs) ** 2 / max(df, 1) + theirs**2 / (people.n - 1)
    return variance**2 / parts if parts else df


def _clustered(
    parts: Array, codes: NDArray[np.int_], weight: float, population: Population | None
) -> tuple[float, int]:
    """Return the variance of a rate whose parts come in clusters, and how many are reviewed.

    Args:
        parts: what each reviewed item adds to the rate beyond its mean.
        codes: the clusters of these.
        weight: of the detector, whose marks on all items are a part of the rate then.
        population: all items.
    """
    number = len(np.unique(codes))
    if weight and population is not None:
        f, x, every = population
        beyond = (f - f.sum() / x.sum() * x) / x.sum()
        parts, codes = np.concatenate([parts, weight * beyond]), np.concatenate([codes, every])
    sums = np.bincount(np.unique(codes, return_inverse=True)[1], parts)
    return float(np.square(sums).sum()) * number / max(number - 1, 1), number


def difference_interval(
    a: RateEstimate, b: RateEstimate, *, comparisons: int = 1, df: int = 60
) -> tuple[float, float, float]:
    """Return the rate of a minus that of b, and its ends (Newcombe's, from both intervals).

    Args:
        a: a rate.
        b: another one, of other reviews.
        comparisons: how many are made together; all hold at once (Bonferroni).
        df: degrees of freedom of the smaller sample.
    """
    wider = t_quantile(df, 1 - 0.025 / comparisons) / t_quantile(df)
    d = float(a.rate - b.rate)
    below = np.hypot(a.rate - a.low, b.high - b.rate) * wider
    above = np.hypot(a.high - a.rate, b.rate - b.low) * wider
    return d, max(d - float(below), -1.0), min(d + float(above), 1.0)


def paired_interval(
    a: Mapping[str, Array],
    b: Mapping[str, Array],
    reviewed: NDArray[np.bool_],
    comparisons: int = 1,
    *,
    superpopulation: bool = False,
) -> tuple[float, float, float]:
    """Return the rate of a minus that of b on the same units, and its ends.

    The detector's marks on all units correct the difference as they do a rate: λ is that of PPI++
    for the differences of the two sides' parts in their ratios.

    Args:
        a: of each unit what people said (``y`` of ``x``), and the detector (``f`` of ``size``).
        b: the same of the other side, unit by unit.
        reviewed: which units people have finished on both sides, drawn evenly.
        comparisons: how many are made together; all hold at once (Bonferroni).
        superpopulation: whether the interval is for units like these instead of for these.
    """
    n, items = int(reviewed.sum()), len(reviewed)
    one = np.ones(items)
    sides = [
        (
            _linearised(one[reviewed], side["y"][reviewed], side["x"][reviewed]),
            _linearised(one, side["f"], side["size"]),
        )
        for side in (a, b)
    ]
    mean = float(sides[0][0][0] - sides[1][0][0])
    d = n * (sides[0][0][1] - sides[1][0][1])
    g = items * (sides[0][1][1] - sides[1][1][1])[reviewed]
    spread = g.var(ddof=1)
    lam = max(float(np.cov(d, g)[0, 1] / spread), 0.0) if spread else 0.0
    mean -= lam * float(g.mean())
    rest = d - lam * g
    variance = np.square(rest - rest.mean()).sum() / (n - 2) / n * (1 - n / items)
    if superpopulation:
        variance += d.var(ddof=1) / items  # these units are themselves a sample of others
    variance += _undrawn(n, items)
    half = t_quantile(n - 2, 1 - 0.025 / comparisons) * float(np.sqrt(variance))
    return mean, max(mean - half, -1.0), min(mean + half, 1.0)


def _undrawn(n: int, items: int) -> float:
    """Return the variance that disagreements of people and detector may add that were not drawn.

    A detector that is right on nearly all answers may disagree with people on none of n reviews,
    whose residuals then say that it is always right. Two disagreements of size 1 are taken as not
    seen: with one, intervals held the truth in 90 to 93 % (`bench_rates`, detectors right on 95 to
    99.5 %), with two in at least 93 %.
    """
    return 2 * (1 - min(n / items, 1)) / n**2


def _sum(terms: Array) -> Array:
    return np.asarray(terms.sum(-1))


def _linearised(w: Array, y: Array, x: Array) -> tuple[Array, Array]:
    """Return the ratio of weighted sums, and each item's part in it (its sum over w is 0)."""
    total = (w * x).sum(-1)
    ratio = _divided((w * y).sum(-1), total)
    return ratio, _divided(y - ratio[..., None] * x, total[..., None])


def _within(e: Array, w: Array, strata: NDArray[np.int_] | None) -> Array:
    """Return what deviates from the mean of its stratum; lone items keep their whole value."""
    if strata is None:
        return e
    rest = e.copy()
    for stratum in np.unique(strata):
        inside = strata == stratum
        number = inside.sum(-1, keepdims=True)
        mean = _divided(
            (w * e * inside).sum(-1, keepdims=True), (w * inside).sum(-1, keepdims=True)
        )
        grown = np.sqrt(_divided(number, number - 1))
        rest = np.where(inside & (number > 1), (e - mean) * grown, rest)
    return rest


def _findings(weighted: Array) -> Array:
    """Return how many findings of one size amount to these: their number where all weigh alike."""
    weighted = np.clip(weighted, 0, None)
    return _divided(weighted.sum(-1) ** 2, np.square(weighted).sum(-1))


def _divided(a: Array, b: Array) -> Array:
    """Return a / b, and 0 where b is 0."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    return np.divide(a, b, out=np.zeros(a.shape), where=b != 0)

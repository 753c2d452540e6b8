"""Prediction-powered rates and the samples they rest on, against the papers and simulations."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from spanlab.measure.powered import RateEstimate, ReviewedSample, difference_interval, estimate_rate
from spanlab.measure.sampling import (
    cautious_rho,
    inclusion_probabilities,
    random_numbers,
    review_order,
    reviews_for,
    reviews_for_difference,
    uncertainty_sizes,
)
from spanlab.scoring.intervals import t_quantile, wilson

Array = NDArray[np.float64]
RNG = np.random.default_rng
N = 2_000


class MeanEstimate(NamedTuple):
    """An estimate of PPI and its variance."""

    theta: float
    variance: float
    lam: float


def ppi_mean(Y: Array, f: Array, f_unlabelled: Array, lam: float | None = None) -> MeanEstimate:  # noqa: N803 - the paper's Y
    """Return the PPI++ mean for evenly drawn reviews as the papers define it.

    Args:
        Y: what people said of n items.
        f: what the detector said of the same items.
        f_unlabelled: what it said of the N others.
        lam: the weight of the detector; tuned (PPI++, example 6.1) and in [0, 1] by default.
    """
    n, others = len(Y), len(f_unlabelled)
    if lam is None:
        spread = np.concatenate((f, f_unlabelled)).var(ddof=1)
        covariance = np.mean((Y - Y.mean()) * (f - f.mean()))
        lam = float(np.clip(covariance / ((1 + n / others) * spread), 0, 1)) if spread else 0.0
    theta = lam * f_unlabelled.mean() + (Y - lam * f).mean()
    variance = (lam * f_unlabelled).var() / others + (Y - lam * f).var() / n
    return MeanEstimate(float(theta), float(variance), lam)


def population(rate: float, distance: float, seed: int = 3) -> tuple[Array, Array]:
    """What is true of each item, and a detector's calibrated probability of it."""
    rng = RNG(seed)
    y = (np.arange(N) < round(rate * N)).astype(float)
    score = rng.normal(size=N) + distance * y
    odds = np.exp(distance * score - distance**2 / 2) * rate / (1 - rate)
    return y, odds / (1 + odds)


def samples(y: Array, f: Array, n: int, design: str, draws: int) -> ReviewedSample:
    p = uncertainty_sizes(f) if design == "uncertainty" else np.ones(len(f))
    u = RNG(5).random((draws, len(f)))
    strata = (np.arange(len(f)) % 4).astype(int) if design == "stratified" else None
    if strata is None:
        chosen = np.argpartition(u / p, n, axis=1)[:, :n]
    else:
        parts = [np.flatnonzero(strata == name) for name in range(4)]
        sizes = [n // 4 + (name < n % 4) for name in range(4)]
        chosen = np.concatenate(
            [
                part[np.argpartition(u[:, part], size, axis=1)[:, :size]]
                for part, size in zip(parts, sizes, strict=True)
            ],
            axis=1,
        )
    pi = inclusion_probabilities(p, n)[chosen]
    return ReviewedSample(
        y[chosen], f[chosen], pi, strata=None if strata is None else strata[chosen]
    )


def test_the_mean_is_that_of_ppi_plus_plus_written_out() -> None:
    """Example 6.1 of the paper, term by term."""
    y, f, others = RNG(1).random(40), RNG(2).random(40), RNG(3).random(400)
    everything = np.concatenate((f, others))
    covariance = sum((a - y.mean()) * (b - f.mean()) for a, b in zip(y, f, strict=True)) / 40
    lam = covariance / ((1 + 40 / 400) * everything.var(ddof=1))
    for weight, given in ((1.0, 1.0), (0.0, 0.0), (min(max(lam, 0), 1), None)):
        found = ppi_mean(y, f, others, given)
        theta = weight * others.mean() + y.mean() - weight * f.mean()
        spread = np.var(weight * others) / 400 + np.var(y - weight * f) / 40
        assert found == pytest.approx((theta, spread, weight), abs=1e-12)


def test_the_mean_is_that_of_the_reference_implementation() -> None:
    """Point and normal interval that ppi-python 0.2.3 printed for these numbers."""
    f, others = RNG(2).random(40), RNG(3).random(400)
    found = ppi_mean((RNG(1).random(40) + f) / 2, f, others)
    half = NormalDist().inv_cdf(0.975) * found.variance**0.5
    reference = (0.5041794870953726, 0.4598193241048906, 0.5485396500858547)
    assert (found.theta, found.theta - half, found.theta + half) == pytest.approx(
        reference, abs=1e-9
    )


def test_the_rate_of_all_items_is_the_difference_estimator() -> None:
    y, f = population(0.3, 1.5)
    chosen = RNG(1).permutation(N)[:500]
    sample = ReviewedSample(y[chosen], f[chosen], np.full(500, 0.25))
    found = estimate_rate(sample, f.mean(), items=N)
    lam = float(found.lam)
    assert found.rate == pytest.approx(y[chosen].mean() + lam * (f.mean() - f[chosen].mean()))
    left = np.delete(f, chosen)
    scaled = lam * len(left) / N  # the paper's λ, of reviewed and other items apart
    assert float(found.rate) == pytest.approx(ppi_mean(y[chosen], f[chosen], left, scaled).theta)


@pytest.mark.parametrize("design", ["uniform", "stratified", "uncertainty"])
@pytest.mark.parametrize("n", [30, 60, 200])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_intervals_cover_and_are_no_wider_than_reviews_alone(
    design: str, n: int, rate: float
) -> None:
    for distance in (0.36, 1.19, 2.33):  # AUROC .6, .8, .95
        y, f = population(rate, distance)
        sample = samples(y, f, n, design, 600)
        alone = estimate_rate(sample, None, items=N)
        found = estimate_rate(sample, f.mean(), items=N)
        covered = np.mean((found.low <= y.mean()) & (y.mean() <= found.high))
        assert covered >= 0.935 - 2 * np.sqrt(0.06 / 600)
        assert np.mean(found.high - found.low) <= 1.02 * np.mean(alone.high - alone.low)
        assert found.high.min() > 0


@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_intervals_for_answers_like_these_hold_the_rate_they_come_from(rate: float, n: int) -> None:
    """Every draw is a dataset of its own."""
    rng, draws, items = RNG(11), 400, 1_000
    y = (rng.random((draws, items)) < rate).astype(float)
    score = rng.normal(size=y.shape) + 1.19 * y
    odds = np.exp(1.19 * score - 1.19**2 / 2) * rate / (1 - rate)
    f = odds / (1 + odds)
    sample = ReviewedSample(y[:, :n], f[:, :n], np.full((draws, n), n / items))
    found = estimate_rate(sample, f.mean(-1), items=items, superpopulation=True)
    covered = np.mean((found.low <= rate) & (rate <= found.high))
    assert covered >= 0.935 - 2 * np.sqrt(0.06 / draws)
    finite = estimate_rate(sample, f.mean(-1), items=items)
    assert np.mean(found.high - found.low) > np.mean(finite.high - finite.low)


def test_a_good_detector_is_worth_what_its_correlation_allows() -> None:
    y, f = population(0.3, 2.33)
    sample = samples(y, f, 200, "uniform", 600)
    alone = estimate_rate(sample, None, items=N)
    found = estimate_rate(sample, f.mean(), items=N)
    gain = 1 - np.mean(found.high - found.low) / np.mean(alone.high - alone.low)
    # A tenth less than before: disagreements that were not drawn are allowed for.
    assert gain >= 0.85 * (1 - np.sqrt(1 - np.corrcoef(y, f)[0, 1] ** 2))


def test_no_finding_in_the_sample_is_no_rate_of_zero() -> None:
    nothing = ReviewedSample(np.zeros(30), np.full(30, 0.1), np.full(30, 0.01))
    for items_like_these in (False, True):
        found = estimate_rate(nothing, 0.1, items=3_000, superpopulation=items_like_these)
        assert (float(found.rate), float(found.low)) == (0, 0)
        assert 0.1 < float(found.high) < 0.2
    everything = ReviewedSample(np.ones(30), np.full(30, 0.9), np.full(30, 0.01))
    assert float(estimate_rate(everything, 0.9, items=3_000).low) < 0.9


def test_all_items_reviewed_leave_nothing_to_chance_but_other_answers() -> None:
    y = np.array([0, 1, 0, 0, 1.0])
    sample = ReviewedSample(y, y, np.ones(5))
    assert estimate_rate(sample, 0.4, items=5)[:3] == pytest.approx((0.4, 0.4, 0.4))
    like_these = estimate_rate(sample, 0.4, items=5, superpopulation=True)
    assert float(like_these.low) < 0.2
    assert float(like_these.high) > 0.6


def test_characters_are_a_ratio() -> None:
    length, marked = np.array([10, 1000, 20, 500.0]), np.array([5, 10, 0, 50.0])
    sample = ReviewedSample(marked, marked, np.full(4, 0.1), length, length)
    assert float(estimate_rate(sample, None, items=40).rate) == pytest.approx(65 / 1530)


def test_every_beginning_of_the_queue_is_a_sample_of_known_odds() -> None:
    f = np.linspace(0, 1, 60)
    p = uncertainty_sizes(f)
    keys = [f"{n}" for n in range(60)]
    orders = [review_order(random_numbers(keys, seed), p) for seed in range(3_000)]
    for n in (5, 20, 40):
        drawn = np.bincount(np.concatenate([order[:n] for order in orders]), minlength=60) / 3_000
        pi = inclusion_probabilities(p, n)
        assert pi.sum() == pytest.approx(n)
        assert abs(drawn - pi).max() < 0.05
    again = review_order(random_numbers(keys, 7), p)
    assert again.tolist() == orders[7].tolist()


def test_groups_have_their_share_of_every_beginning() -> None:
    groups = ["a"] * 300 + ["b"] * 100
    order = review_order(random_numbers([f"{n}" for n in range(400)], 1), np.ones(400), groups)
    assert [abs(np.mean(order[:n] < 300) - 0.75) < 1.5 / n for n in (8, 40, 200, 400)] == [True] * 4


def test_quantiles_intervals_and_sizes_of_samples() -> None:
    for df, known in ((4, 2.7764), (10, 2.2281), (29, 2.0452), (199, 1.9720)):
        assert t_quantile(df) == pytest.approx(known, abs=0.02 if df < 10 else 2e-4)
    low, high = wilson(np.array(0.1), np.array(1e4), 10**6)
    assert (float(low), float(high)) == pytest.approx((0.0943, 0.1060), abs=1e-4)
    assert reviews_for(0.03, 0.1) == 385
    assert reviews_for(0.03, 0.1, 0.8) < 0.37 * 385
    assert reviews_for(0.03, 0.1, items=385) < 200


@pytest.mark.parametrize("rate", [0.05, 0.15])
def test_a_worse_rate_is_caught_with_as_many_reviews_as_proposed(rate: float) -> None:
    """200 runs: five points more are caught in nine of ten, no difference in at most one of 20."""
    n = reviews_for_difference(0.05, rate)
    before, after = population(rate, 1.19, 1), population(rate + 0.05, 1.19, 2)
    caught = {}
    for name, (y, f), seed in (("worse", after, 8), ("same", before, 9)):
        sides = []
        for side, (truth, marks) in ((seed, (y, f)), (7, before)):
            chosen = np.argpartition(RNG(side).random((200, N)), n, axis=1)[:, :n]
            sample = ReviewedSample(truth[chosen], marks[chosen], np.full(chosen.shape, n / N))
            sides.append(estimate_rate(sample, marks.mean(), items=N))
        pairs = [
            tuple(RateEstimate(*(np.asarray(part[at]) for part in side)) for side in sides)
            for at in range(200)
        ]
        caught[name] = np.mean([difference_interval(*pair, df=n - 1)[1] > 0 for pair in pairs])
    assert n < N
    assert caught["worse"] >= 0.9
    assert caught["same"] <= 0.05


def test_the_plan_goes_by_what_a_correlation_is_at_least() -> None:
    """Fisher's z by hand: atanh(.6) - 1.2816 / √37 = .4825, whose tanh is .448."""
    assert cautious_rho(0.6, 40) == pytest.approx(0.448, abs=1e-3)
    assert cautious_rho(0.6, 4_000) == pytest.approx(0.587, abs=1e-3)
    assert cautious_rho(0.1, 40) == cautious_rho(0.9, 3) == 0

"""The variance of rates by hand: every figure follows from the formulas."""

from __future__ import annotations

import numpy as np
import pytest

from spanlab.measure.powered import (
    PeopleSpread,
    Population,
    ReviewedSample,
    estimate_rate,
    paired_interval,
)
from spanlab.scoring.intervals import t_quantile, wilson


def test_a_long_answer_widens_a_ratio_as_the_jackknife_does() -> None:
    """Characters 3 and 1, marked 3 and 0; n = 2 of N = 4, so w = 2 and pi = 1/2.

    R = 6/8; parts a = (3 - 9/4) / 8 = 3/32 and (0 - 3/4) / 8 = -3/32; q = w² (1 - pi) = 2.
    Shares of the denominator 6/8 and 2/8: q / (1 - share)² = 32 and 32/9.
    V = (32 + 32/9) · 9/1024 · n / (n - 1) = 5/8. With even shares 4 · 9/1024 · 2 = 9/128.
    """
    even = np.full(2, 0.5)
    sample = ReviewedSample(np.array([3.0, 0.0]), np.zeros(2), even, np.array([3.0, 1.0]))
    found = estimate_rate(sample, None, items=4)
    assert float(found.rate) == pytest.approx(3 / 4)
    assert float(found.variance) == pytest.approx(5 / 8)


def test_the_detectors_share_has_the_detectors_denominators() -> None:
    """People count 1 claim in each of 80 answers, the detector 2, 1, 2, 1, ...; both
    find one in the first half of them.

    r_f = 40 / 120 = 1/3 by the detector's denominators (by people's it were 40 / 80 = 1/2). With a
    detector rate of 1/3 on all items the correction is 0, so that the rate stays 40 / 80 = 1/2.
    """
    y, sizes = np.repeat([1.0, 0.0], 40), np.tile([2.0, 1.0], 40)
    sample = ReviewedSample(y, y, np.full(80, 0.01), np.ones(80), sizes)
    found = estimate_rate(sample, 1 / 3, items=8_000)
    assert float(found.lam) > 0.4
    assert float(found.rate) == pytest.approx(1 / 2)


def test_groups_drawn_apart_differ_only_within() -> None:
    """Two strata of 4 of 8 items: one has findings 1, 1, 1, 0, the other none.

    R = 3/8; w = 2, sum of w = 16, a = (y - R) / 16. Within the first stratum a deviates from its
    mean by 1/64 three times and by -3/64: squares 12/4096, grown by 4/3 to 16/4096; the second
    has none. V = q · 16/4096 · n / (n - 1) = 2 · 1/256 · 8/7 = 1/112.
    Without the strata: squares of a sum to (3 · 25 + 5 · 9) / 64 / 256 = 15/2048, V = 15/896.
    """
    y = np.array([1.0, 1, 1, 0, 0, 0, 0, 0])
    strata = np.repeat([0, 1], 4)
    sample = ReviewedSample(y, np.zeros(8), np.full(8, 0.5), strata=strata)
    found = estimate_rate(sample, None, items=16)
    assert float(found.rate) == pytest.approx(3 / 8)
    assert float(found.variance) == pytest.approx(1 / 112)


def test_half_a_finding_of_the_largest_weight_may_be_unseen() -> None:
    """Weights 4 and 1 (pi 1/4 and 1), none found: V = (16 - 17/2) / 4 / 25 = 3/40."""
    sample = ReviewedSample(np.zeros(2), np.zeros(2), np.array([0.25, 1.0]))
    assert float(estimate_rate(sample, None, items=5).variance) == pytest.approx(3 / 40)


def test_the_detectors_weight_and_the_variance_that_is_left() -> None:
    """80 of 800 reviewed, 40 findings; the detector errs on 4 of each kind.

    Tuned λ = (72 - 8) / 80 = 4/5, shrunk by m / (m + 1) with m = 40: 32/41.
    Left: q (72/4 · (9/41)² + 8/4 · (73/41)²) / 800², q = 100 · .9, by 80/78 and 1 + .5/40;
    two disagreements not drawn: 2 · .9 / 80². In sum .00133380.
    """
    y = np.repeat([1.0, 0.0], 40)
    f = np.where(np.arange(80) % 40 < 4, 1 - y, y)
    found = estimate_rate(ReviewedSample(y, f, np.full(80, 0.1)), 0.5, items=800)
    assert float(found.lam) == pytest.approx(32 / 41)
    assert float(found.variance) == pytest.approx(0.00133380, abs=1e-8)


def test_of_marks_in_clusters_those_on_all_items_count_with_the_reviewed_ones() -> None:
    """The 80 of above as 40 documents of 20 answers, of which 2 are reviewed, and marked alike.

    A right document adds (1 - λ) + λ to its side of the rate, a wrong one (1 + λ) - λ, each by
    1/80: V = 40 / 80² · 40/39, the two disagreements not drawn, 2 · .9 / 80², and half a document
    of findings, (1 / 40² - 1 / 80²) / 4.
    """
    y = np.repeat([1.0, 0.0], 40)
    f = np.where(np.arange(80) % 40 < 4, 1 - y, y)
    documents = np.repeat(np.arange(40), 2)
    everything = Population(f[::2].repeat(20), np.ones(800), np.repeat(np.arange(40), 20))
    sample = ReviewedSample(y, f, np.full(80, 0.1), clusters=documents)
    found = estimate_rate(sample, 0.5, items=800, superpopulation=True, population=everything)
    assert float(found.lam) == pytest.approx(32 / 41)
    assert float(found.variance) == pytest.approx(1 / 156 + 2.55 / 80**2)


def test_the_detectors_weight_in_a_paired_difference() -> None:
    """25 times four reviewed units with differences 1, 1, 0, -1 by people and 1, 1, 0, 0 by the
    detector, and four others with 0, 0, 0, 1.

    λ = cov / var = .5 / (1/3) = 3/2; the detector's mean is 1/2 there and 3/8 of all, so that the
    difference is 1/4 - 3/2 · 1/8 = 1/16. Left are 0, 0, 1/2, -1/2: V = 12.5 / 98 / 100 · 1/2, and
    two disagreements not drawn, 2 · 1/2 / 100².
    """
    one = np.ones(200)
    people = [[1.0, 1, 0, 0], [0.0, 0, 0, 1]]
    detector = [[1.0, 1, 1, 0, 0, 0, 0, 1], [0.0, 0, 1, 0, 0, 0, 0, 0]]
    a, b = (
        {
            "y": np.concatenate([np.tile(said, 25), np.zeros(100)]),
            "x": one,
            "f": np.concatenate([np.tile(marked[:4], 25), np.tile(marked[4:], 25)]),
            "size": one,
        }
        for said, marked in zip(people, detector, strict=True)
    )
    reviewed = np.arange(200) < 100
    mean, low, high = paired_interval(a, b, reviewed)
    assert mean == pytest.approx(1 / 16)
    half = t_quantile(98) * np.sqrt(12.5 / 98 / 200 + 1 / 100**2)
    assert (low, high) == pytest.approx((mean - half, mean + half))


def test_a_paired_difference_allows_for_what_was_not_drawn_and_for_other_units() -> None:
    """32 of 64 units; a has findings in 16 of them, b in 8 of these.

    d = .75 in 8, -.25 in 24: squares 6. V = 6 / 30 / 32 / 2 + 2 · .5 / 32² = 21/5120;
    of units like these 6 / 31 / 64 = 3/992 more. t of 30 is 2.0423.
    """
    ones, none = np.ones(64), np.zeros(64)
    a = {"y": np.tile([1.0, 1, 0, 0], 16), "x": ones, "f": none, "size": ones}
    b = {**a, "y": np.tile([0.0, 1, 0, 0], 16)}
    reviewed = np.arange(64) < 32
    for like, variance in ((False, 21 / 5120), (True, 21 / 5120 + 3 / 992)):
        mean, low, high = paired_interval(a, b, reviewed, superpopulation=like)
        assert mean == pytest.approx(1 / 4)
        assert high - mean == pytest.approx(2.0423 * variance**0.5, abs=1e-4)
        assert mean - low == pytest.approx(2.0423 * variance**0.5, abs=1e-4)


def test_items_that_pull_the_detectors_weight_count_as_left_out() -> None:
    """8 answers of 1 and 8 of 3 characters, half of each marked by people and detector.

    λ = m / (m + 1) = 32/37 with m = 16² / 40. q / (1 - share)² by 9900: u = (32/31)², v = (32/29)².
    Pulls: .25 u / D = .011077 and 2.25 v / D = .113922 with D = 2 u + 18 v.
    Left: 9900 / 3200² (5/37)² (2 u / .988923² + 18 v / .886078²) 16/14 (1 + .5 / 6.4) = .00065465;
    not drawn: 2 · .99 / 16² · 5 / 2² = .00966797. Without the pulls .01019110.
    """
    x = np.repeat([1.0, 3.0], 8)
    y = x * np.tile([1.0, 0.0], 8)
    found = estimate_rate(ReviewedSample(y, y, np.full(16, 0.01), x, x), 0.5, items=1_600)
    assert float(found.lam) == pytest.approx(32 / 37)
    assert float(found.variance) == pytest.approx(0.01032262, abs=2e-8)


def test_answers_like_these_add_their_own_spread() -> None:
    """Of n = 4 of N = 8 with findings 1, 0, 0, 0: the variance of y, 1/4 with n - 1, over N."""
    y, half = np.array([1.0, 0.0, 0.0, 0.0]), np.full(4, 0.5)
    sample = ReviewedSample(y, np.zeros(4), half)
    these = float(estimate_rate(sample, None, items=8).variance)
    like = float(estimate_rate(sample, None, items=8, superpopulation=True).variance)
    assert like - these == pytest.approx(1 / 4 / 8)


def test_few_right_answers_weigh_as_few_wrong_ones() -> None:
    """What is found and what is not may change places: only their numbers count."""
    y = np.repeat([1.0, 0.0], [180, 20])
    f = np.where(np.arange(200) % 90 == 0, 1 - y, y)
    sides = [
        estimate_rate(ReviewedSample(marks, by, np.full(200, 0.1)), rate, items=2_000)
        for marks, by, rate in ((y, f, float(f.mean())), (1 - y, 1 - f, float(1 - f.mean())))
    ]
    assert float(sides[0].lam) == pytest.approx(float(sides[1].lam))
    assert float(sides[0].lam) > 0
    assert float(sides[0].variance) == pytest.approx(float(sides[1].variance))


@pytest.mark.parametrize("sizes", [None, np.tile([3.0, 1.0], 10)])
def test_clusters_whose_answers_cancel_out_narrow_nothing(sizes: np.ndarray | None) -> None:
    """Ten questions, one of two answers wrong: sums are alike, and half a cluster is added.

    Squared shares of the denominator sum to 20 · .05² = 1/20, those of questions to 10 · .1² =
    1/10: added is ((1/10)² - (1/20)²) / 4. Of a ratio it is half; with sizes 3 and 1 the squared
    shares sum to 10 · (9 + 1) / 1600 = 1/16.
    """
    y = np.tile([1.0, 0.0], 10) * (1 if sizes is None else sizes)
    codes = np.repeat(np.arange(10), 2)
    alone, together = (
        float(
            estimate_rate(
                ReviewedSample(y, np.zeros(20), np.full(20, 0.2), x=sizes, clusters=clusters),
                None,
                items=100,
                superpopulation=True,
            ).variance
        )
        for clusters in (None, codes)
    )
    added = (1 / 100 - 1 / 400) / 4 if sizes is None else (0.01 - 0.00390625) / 4 / 2
    assert together - alone == pytest.approx(added)


def test_three_people_have_few_degrees_of_freedom() -> None:
    """Satterthwaite's: of items 1/60 with 9, of people 1/120 with 2."""
    y = np.repeat([1.0, 0.0], [2, 8])
    sample = ReviewedSample(y, np.zeros(10), np.full(10, 0.01))
    items = float(estimate_rate(sample, None, items=1_000, superpopulation=True).variance)
    people = PeopleSpread(items / 2, 3, common=True)
    found = estimate_rate(sample, None, items=1_000, superpopulation=True, people=people)
    assert float(found.variance) == pytest.approx(1.5 * items)
    df = 1.5**2 / (1 / 9 + 0.5**2 / 2)
    low, high = wilson(found.rate, found.n_effective, df)
    assert float(found.low) == pytest.approx(float(low))
    assert float(found.high) == pytest.approx(float(high))

"""Scores of verdicts on claims: hand arithmetic, coarse verdicts, soft scores, intervals."""

from __future__ import annotations

import pytest

from spanlab.base.errors import InputError
from spanlab.scoring.claims import (
    RIGHT,
    JudgedClaim,
    compare_claims,
    compare_macro_f1,
    score_claims,
)


def claims(*pairs: tuple[str, str | None], support: list[float] | None = None) -> list[JudgedClaim]:
    scores: list[float] | list[None] = support or [None] * len(pairs)
    return [
        JudgedClaim(f"item {index // 2}", gold, predicted, score)
        for index, ((gold, predicted), score) in enumerate(zip(pairs, scores, strict=True))
    ]


def test_scores_by_hand() -> None:
    """Supported: 3 of 4 found, 3 of 4 right. Refuted: 1 of 2 found, 1 of 2 right."""
    report = score_claims(
        claims(
            ("supported", "supported"),
            ("supported", "supported"),
            ("supported", "supported"),
            ("supported", "refuted"),
            ("refuted", "refuted"),
            ("refuted", "supported"),
        )
    )
    assert report.accuracy.mean == pytest.approx(4 / 6)
    assert report.balanced_accuracy.mean == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert report.macro_f1.mean == pytest.approx((3 / 4 + 1 / 2) / 2)
    refuted, supported = report.verdicts
    assert (refuted.verdict, refuted.gold, refuted.predicted) == ("refuted", 2, 2)
    assert (supported.precision, supported.recall, supported.f1) == (0.75, 0.75, 0.75)


def test_verdicts_that_only_the_prediction_uses_are_wrong_but_no_class() -> None:
    given = claims(("supported", "inconclusive"), ("supported", "supported"), ("refuted", None))
    report = score_claims(given, keep_inconclusive=True)
    assert [score.verdict for score in report.verdicts] == ["refuted", "supported"]
    assert report.accuracy.mean == pytest.approx(1 / 3)
    assert report.balanced_accuracy.mean == pytest.approx((1 / 2 + 0) / 2)
    # Supported: F1 = 2·1 / (2 gold + 1 predicted); refuted: 0.
    assert report.macro_f1.mean == pytest.approx((2 / 3 + 0) / 2)
    assert report.macro_f1_all.mean == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert report.unjudged == 1


def test_macro_f1_of_all_verdicts_is_that_of_scikit_learn() -> None:
    """All gold verdicts are one; a system that errs in a fifth has an F1 of .889 on that one."""
    pairs = [("supported", "supported")] * 8 + [("supported", "refuted")] * 2
    report = score_claims(claims(*pairs))
    assert report.macro_f1.mean == pytest.approx(8 / 9)
    expected = (8 / 9 + 0) / 2  # f1_score(…, average="macro", zero_division=0)
    assert report.macro_f1_all.mean == pytest.approx(expected)
    assert report.macro_f1_all.low <= expected <= report.macro_f1_all.high


def test_claims_that_either_side_calls_inconclusive_are_left_out() -> None:
    given = claims(
        ("supported", "inconclusive"),
        ("inconclusive", "supported"),
        ("supported", "supported"),
        ("refuted", "supported"),
    )
    report = score_claims(given)
    assert (report.n, report.inconclusive, report.accuracy.mean) == (2, 2, 0.5)
    # Of two systems, those that either calls so.
    sure = [claim._replace(predicted=claim.gold) for claim in given]
    assert compare_claims(sure, given).difference == 0.5
    with pytest.raises(InputError, match="2 claims, all of them inconclusive"):
        score_claims(given[:2])


def test_not_supported_is_compared_with_what_it_does_not_tell_apart() -> None:
    report = score_claims(
        claims(
            ("refuted", "not-supported"),
            ("not-enough-evidence", "not-supported"),
            ("supported", "supported"),
        )
    )
    assert report.accuracy.mean == 1.0
    assert [score.verdict for score in report.verdicts] == ["not-supported", "supported"]


def test_auroc_counts_pairs_and_halves_ties() -> None:
    """Supported .9 and .5 against .5 and .1: three pairs are right, one is tied."""
    pairs = [("supported", "supported")] * 2 + [("refuted", "refuted")] * 2
    report = score_claims(claims(*pairs, support=[0.9, 0.5, 0.5, 0.1]))
    assert report.auroc is not None
    assert report.auroc.mean == pytest.approx(3.5 / 4)
    assert report.auroc.low <= report.auroc.mean <= report.auroc.high


def test_claims_without_a_soft_score_do_not_count_for_auroc() -> None:
    """Of VeriTrail's claims with nothing selected no verdict is asked for, as in appendix E.3."""
    pairs = [("supported", "supported")] * 2 + [("refuted", "refuted")] * 2
    given = claims(*pairs, support=[0.9, 0.5, 0.5, 0.1])
    report = score_claims([*given, *claims(("supported", "not-supported"))])
    assert report.auroc is not None
    assert (report.auroc.mean, report.soft, report.n) == (3.5 / 4, 4, 5)


def test_without_soft_scores_there_is_no_auroc() -> None:
    assert score_claims(claims(("supported", "supported"), ("refuted", "refuted"))).auroc is None


def test_intervals_hold_the_figure_and_are_always_the_same() -> None:
    pairs = [("supported", "supported"), ("refuted", "supported")] * 30
    first, again = score_claims(claims(*pairs)), score_claims(claims(*pairs))
    assert first == again
    assert first.accuracy.low <= 0.5 <= first.accuracy.high


def test_intervals_come_from_items_not_claims() -> None:
    """Claims of an item that are all right or all wrong count as one observation."""
    same = [JudgedClaim(f"i{n // 10}", "supported", "supported") for n in range(50)]
    same += [JudgedClaim(f"w{n // 10}", "supported", "refuted") for n in range(50)]
    alone = [claim._replace(item=f"{n}") for n, claim in enumerate(same)]
    together, apart = score_claims(same).accuracy, score_claims(alone).accuracy
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_no_claims_are_an_error() -> None:
    with pytest.raises(InputError, match="no claim"):
        score_claims([])


def test_two_systems_are_compared_by_their_macro_f1() -> None:
    """All called supported: 2/3 for supported, 0 for refuted; the other system is right."""
    gold = [("supported", "refuted")[n % 2] for n in range(24)]
    right = claims(*((verdict, verdict) for verdict in gold))
    blind = claims(*((verdict, "supported") for verdict in gold))
    found = compare_macro_f1(right, blind)
    assert (found.a.mean, found.b.mean) == pytest.approx((1, 1 / 3))
    assert found.difference.difference == pytest.approx(2 / 3)
    assert (found.difference.low, found.difference.high) == pytest.approx((2 / 3, 2 / 3))
    assert found.difference.p < 0.01
    same = compare_macro_f1(blind, blind).difference
    assert (same.difference, same.low, same.high, same.p) == (0, 0, 0, 1)


def test_of_steps_macro_f1_is_over_the_types_of_errors_right_steps_left_out() -> None:
    """Off-topic: found 2, right 1 of 1, F1 2/3; Redundancy is never found, F1 0."""
    gold = ("Off-topic", RIGHT, RIGHT, "Redundancy")
    found = claims(*zip(gold, ("Off-topic", "Off-topic", RIGHT, RIGHT), strict=True))
    nothing = claims(*((each, RIGHT) for each in gold))
    compared = compare_macro_f1(found, nothing)
    assert (compared.a.mean, compared.b.mean) == pytest.approx((1 / 3, 0))
    assert compare_macro_f1(nothing[1:3], nothing[1:3]).a.mean == 0


def test_macro_f1_is_compared_in_the_verdicts_that_both_sides_tell_apart() -> None:
    """One system knows "not-supported" alone: the other's "refuted" is that, too."""
    gold = ("supported", "refuted", "refuted", "not-enough-evidence")
    coarse = claims(
        *((each, "supported" if each == "supported" else "not-supported") for each in gold)
    )
    fine = claims(*((each, "refuted" if each != "supported" else each) for each in gold))
    found = compare_macro_f1(coarse, fine)
    assert (found.a.mean, found.b.mean) == (1.0, 1.0)


def test_macro_f1_is_compared_on_the_same_claims_alone() -> None:
    with pytest.raises(InputError, match="1 and 0 claims"):
        compare_macro_f1(claims(("supported", "supported")), [])

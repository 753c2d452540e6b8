"""Shares of errors by stage, and how alike two runs see them."""

from __future__ import annotations

import pytest

from spanlab.base.errors import InputError
from spanlab.scoring.agreement import stage_agreement, stage_shares


def test_a_claim_with_several_stages_counts_for_each_by_a_part() -> None:
    claims = [("map",), ("map",), ("report",), ("map", "report")]
    shares = stage_shares(claims, ("report", "map", "answer"))
    # Of four claims "map" gets 1 + 1 + 0 + 1/2 parts, "report" 0 + 0 + 1 + 1/2.
    assert {stage: share.mean for stage, share in shares.items()} == {
        "report": 0.375,
        "map": 0.625,
        "answer": 0.0,
    }
    assert shares["map"].low < 0.625 < shares["map"].high
    assert shares["answer"].low == 0.0 < shares["answer"].high < 0.5


def test_a_single_claim_says_little_of_the_next() -> None:
    share = stage_shares([("map",)], ("map",))["map"]
    assert share.mean == share.high == 1.0
    assert share.low == pytest.approx(0.2065, abs=1e-3)  # Wilson's of one in one


def test_without_claims_there_are_no_shares() -> None:
    with pytest.raises(InputError, match="no value"):
        stage_shares([], ("map",))


# Jensen-Shannon with base 2: (KL(p, m) + KL(q, m)) / 2, where m is the mean of p and q.
AGREEMENTS = {
    "equal": ((0.6, 0.3, 0.1), (0.6, 0.3, 0.1), 0.0, 1.0),
    "reversed": ((0.6, 0.4, 0.0), (0.0, 0.4, 0.6), 0.6, -1.0),
    "nothing common": ((1.0, 0.0), (0.0, 1.0), 1.0, -1.0),
    # m = (3/4, 1/4): (log2(2/3)/2 + log2(2)/2 + log2(4/3)) / 2
    "one stage against two": ((0.5, 0.5), (1.0, 0.0), 0.311278, None),
    # ranks (½, ½, −1) and (1, 0, −1): 1.5 / √(1.5 · 2)
    "ties share their rank": ((0.5, 0.5, 0.0), (0.6, 0.4, 0.0), 0.007299, 0.866025),
    "one stage": ((1.0,), (1.0,), 0.0, None),
}


@pytest.mark.parametrize(
    ("one", "other", "divergence", "correlation"), AGREEMENTS.values(), ids=AGREEMENTS
)
def test_two_runs_by_hand(
    one: tuple[float, ...],
    other: tuple[float, ...],
    divergence: float,
    correlation: float | None,
) -> None:
    found = stage_agreement(one, other)
    assert found.divergence == pytest.approx(divergence, abs=1e-6)
    assert found == stage_agreement(other, one)
    if correlation is None:
        assert found.correlation is None
    else:
        assert found.correlation == pytest.approx(correlation, abs=1e-6)

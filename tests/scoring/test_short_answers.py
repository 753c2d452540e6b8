"""Exact match and F1 by hand, as HotpotQA counts them."""

from __future__ import annotations

import pytest

from spanlab.scoring.answers import score_answer


@pytest.mark.parametrize(
    ("answer", "right", "exact", "f1"),
    [
        ("The Beatles!", ["beatles"], 1.0, 1.0),
        ("Her Honor, the Governor", ["Her Honor The Governor"], 1.0, 1.0),
        ("25 August 1963", ["August 25, 1963"], 0.0, 1.0),
        ("Bath", ["Bath, Maine"], 0.0, 2 / 3),
        ("Bath", ["Rome", "Bath"], 1.0, 1.0),
        ("a big old red tower", ["old tower", "red house"], 0.0, 2 / 3),
        ("no", ["no"], 1.0, 1.0),
        ("no, they are not", ["no"], 0.0, 0.0),
        ("yes", ["no"], 0.0, 0.0),
        ("", ["Oslo"], 0.0, 0.0),
        ("Oslo", [], 0.0, 0.0),
    ],
)
def test_an_answer_scores_by_the_right_one_that_it_matches_best(
    answer: str, right: list[str], exact: float, f1: float
) -> None:
    found = score_answer(answer, right)
    assert found == pytest.approx((exact, f1))

"""What people read while they wait."""

from __future__ import annotations

import pytest

from spanlab.ui.messages import describe, share


@pytest.mark.parametrize(
    ("done", "total", "seconds", "about", "expected"),
    [
        (0, 100, 0.0, False, "0 of 100 items"),
        (50, 100, 5.0, False, "50 of 100 items · 10 a second · 5 s left"),
        (1_000, 4_000, 60.0, True, "1,000 of about 4,000 items · 17 a second · 3 min 00 s left"),
        (1, 3_601, 2.0, False, "1 of 3,601 items · 2.0 s each · 2 h 00 min left"),
        (30, None, 3.0, False, "30 items · 10 a second"),
        (120, 100, 12.0, True, "120 items · 10 a second"),
    ],
    ids=["start", "half", "minutes", "slow", "unknown", "more-than-estimated"],
)
def test_progress_in_words(
    done: int, total: int | None, seconds: float, about: bool, expected: str
) -> None:
    assert describe(done, total, seconds, about=about) == expected


def test_an_estimate_that_was_too_low_does_not_look_finished() -> None:
    assert share(50, 100) == 0.5
    assert share(100, 100) == 1.0
    assert share(120, 100) == 0.99
    assert share(120, None) == 0.0

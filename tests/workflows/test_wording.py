"""Figures as people read them."""

from __future__ import annotations

import pytest

from spanlab.workflows.wording import figure, unsigned_zero


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(-0.0011, "0.00", id="rounds to zero from below"),
        pytest.param(-0.0, "0.00", id="negative zero"),
        pytest.param(-0.006, "-0.01", id="still negative"),
        pytest.param(0.126, "0.13", id="positive"),
    ],
)
def test_what_rounds_to_zero_has_no_minus_sign(value: float, written: str) -> None:
    assert figure(value, 2) == written


def test_a_difference_has_its_sign() -> None:
    assert [figure(0.1, signed=True), figure(-0.0001, signed=True)] == ["+0.100", "+0.000"]


def test_a_table_gets_the_value_itself_unless_it_would_show_minus_zero() -> None:
    assert str(unsigned_zero(-0.0004)) == "0.0"
    assert [unsigned_zero(value) for value in (-0.0006, 0.0004, None)] == [-0.0006, 0.0004, None]

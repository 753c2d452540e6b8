"""Calibration of probabilities against shares of people: hand arithmetic."""

from __future__ import annotations

import pytest

from spanlab.extents import Extent
from spanlab.labels import SoftLabel
from spanlab.scorers import CalibrationSums, shares


def test_calibration_by_hand() -> None:
    """Of ten characters the first four have probability .8; one of two people marks 2 to 6."""
    sums = CalibrationSums()
    sums.add([SoftLabel(0, 4, 0.8)], shares([[Extent(2, 6)], []]), 10)
    found = sums.result()
    assert found is not None
    zero, eight = found.bins
    assert (zero.low, zero.high, zero.characters, zero.prob) == (0, 0, 6, 0)
    assert zero.share == pytest.approx(2 * 0.5 / 6)  # characters 4 and 5
    assert (eight.low, eight.high, eight.characters) == (0.7, 0.8, 4)
    assert eight.prob == pytest.approx(0.8)
    assert eight.share == pytest.approx(2 * 0.5 / 4)  # characters 2 and 3
    assert found.error == pytest.approx((6 * (1 / 6) + 4 * (0.8 - 0.25)) / 10)


def test_a_detector_that_says_what_people_say_is_calibrated() -> None:
    sums = CalibrationSums()
    people = shares([[Extent(0, 4)], [Extent(0, 2)], [Extent(0, 2)]])
    sums.add(people, people, 9)
    found = sums.result()
    assert found is not None
    assert found.error == pytest.approx(0)
    assert sum(each.characters for each in found.bins) == 9


def test_without_characters_there_is_no_calibration() -> None:
    assert CalibrationSums().result() is None

"""Calibrations by hand arithmetic."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest

from spanlab.base.errors import InputError
from spanlab.systems.encoder.words import WordCalibration, fit_isotonic, fit_temperature


def test_the_temperature_brings_probabilities_to_the_shares() -> None:
    """.9 becomes .75 and .1 becomes .25 where the logit log 9 is divided into log 3: T is 2."""
    found = fit_temperature(np.array([0.9, 0.1]), np.array([0.75, 0.25]), np.array([4.0, 4.0]))
    assert found.temperature == pytest.approx(log(9) / log(3), abs=1e-4)
    assert found.apply(np.array([0.9, 0.1, 0.5])) == pytest.approx([0.75, 0.25, 0.5], abs=1e-4)
    assert found.apply(np.array([0.0, 1.0])) == pytest.approx([0.0, 1.0], abs=0.01)


def test_isotonic_regression_pools_what_would_fall() -> None:
    """Shares .2, .6, .4, 1 at .1, .3, .5, .9: the middle ones fall, and become .5 by weight 1:1."""
    found = fit_isotonic(
        np.array([0.3, 0.1, 0.9, 0.5]), np.array([0.6, 0.2, 1.0, 0.4]), np.array([2.0, 1, 1, 2])
    )
    assert [point for pair in found.points for point in pair] == pytest.approx(
        [0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.9, 1.0]
    )
    between = found.apply(np.array([0.0, 0.2, 0.4, 0.7, 1.0]))
    assert between == pytest.approx([0.2, 0.35, 0.5, 0.75, 1.0])


def test_words_with_one_probability_get_their_mean_share() -> None:
    found = fit_isotonic(np.full(3, 0.9), np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 2.0]))
    assert found.points == ((0.9, 0.75),)


def test_the_order_of_words_with_one_probability_does_not_matter() -> None:
    probs, shares = np.array([0.1, 0.9, 0.9, 0.9, 0.9]), np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    assert fit_isotonic(probs, shares, np.ones(5)).points == ((0.1, 0.0), (0.9, 0.75))


def test_a_calibration_rises_and_stays_between_0_and_1() -> None:
    draw = np.random.default_rng(7)
    probs, weights = draw.random(300), draw.integers(1, 9, 300).astype(float)
    shares = np.clip(probs + draw.normal(0, 0.3, 300), 0, 1)
    grid = np.linspace(0, 1, 101)
    for found in (fit_isotonic(probs, shares, weights), fit_temperature(probs, shares, weights)):
        said = found.apply(grid)
        assert (np.diff(said) >= -1e-12).all()
        assert ((said >= 0) & (said <= 1)).all()
        assert WordCalibration.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("text", ["", "{}", '{"method": "temperature", "temperature": -1}', "[1]"])
def test_what_is_no_calibration_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "learnt.json"
    path.write_text(text)
    with pytest.raises(InputError, match="not a calibration"):
        WordCalibration.read(path)

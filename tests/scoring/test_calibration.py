"""Calibration of probabilities against shares of people: hand arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from spanlab.schema import Annotation, Item, Record, Span
from spanlab.scoring.calibration import CalibrationSums, SampledCalibration, shares
from spanlab.text.extents import Extent
from spanlab.text.labels import SoftLabel


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


def test_the_error_of_all_items_is_estimated_from_few_that_were_drawn() -> None:
    """Long answers are less calibrated and drawn oftener; one reviewer marks a piece or not."""
    dice, population = np.random.default_rng(1), list[tuple[Record, Annotation, float]]()
    for at in range(600):
        long = at % 3 == 0
        item = Item(id=f"i{at}", answer="x" * (300 if long else 60))
        probs = dice.choice(np.arange(1, 9) / 10, 4)
        marks = [(10 * n, 10 * n + 10, float(prob)) for n, prob in enumerate(probs)]
        spans = [Span.of(item.answer, start, end, prob=prob) for start, end, prob in marks]
        true = [s for s in spans if dice.random() < s.prob + (0.1 if long else 0.0)]
        person = Annotation(
            annotator="p", kind="person", spans=[s.model_copy(update={"prob": 1.0}) for s in true]
        )
        judge = Annotation(annotator="d", kind="detector", spans=spans)
        record = Record(item=item, annotations=(person,))
        population.append((record, judge, 0.1 if long else 0.05))
    everything = SampledCalibration()
    for record, judge, _ in population:
        everything.add(record, judge, 1.0)
    whole = everything.result()
    assert whole is not None
    raw, estimates, held = list[float](), list[float](), list[bool]()
    for _ in range(200):
        sample = SampledCalibration()
        for record, judge, odds in population:
            if dice.random() < odds:
                sample.add(record, judge, odds)
        found = sample.result()
        assert found is not None
        assert found.interval is not None
        n_characters = sum(each.characters for each in found.bins)
        distances = (abs(each.prob - each.share) * each.characters for each in found.bins)
        raw.append(sum(distances) / n_characters)
        estimates.append(found.error)
        held.append(found.interval[0] <= whole.error <= found.interval[1])
    assert abs(np.mean(estimates) - whole.error) < abs(np.mean(raw) - whole.error) / 2
    assert np.mean(held) >= 0.93


def test_without_characters_there_is_no_calibration() -> None:
    assert CalibrationSums().result() is None
    assert SampledCalibration().result() is None

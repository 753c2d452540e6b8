"""Probabilities that say what share of a language's annotators marks what is rated so.

What decides and what comes first is left as it is: in each language a higher probability stays the
higher one. Platt, "Probabilistic Outputs for Support Vector Machines" (1999), with shares of
annotators in place of 0 and 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spanlab.systems.offline.links import Column
from spanlab.text.labels import SoftLabel

_EDGE = 0.01  # probabilities nearer to 0 or 1 are as sure: their logits would outweigh all others
_PRIOR = 100.0  # a language with few labels stays near what was rated: so many characters say so
_STEPS = 50  # of Newton's method, which needs about 6


class Calibration(NamedTuple):
    """What is added to the logit of a probability, after it is multiplied by the slope."""

    intercept: float = 0.0
    slope: float = 1.0

    def apply(self, prob: float) -> float:
        """Return the calibrated probability, in [0, 1]; where nothing was measured, the same."""
        if self == _PLAIN:
            return prob
        logit = self.intercept + self.slope * float(_logits(np.array(prob)))
        return 1 / (1 + float(np.exp(-logit)))


_PLAIN = Calibration()


class RatedAnswer(NamedTuple):
    """An answer that was not learnt from: what was found in it, and what annotators marked.

    Both are flattened.
    """

    lang: str
    found: Sequence[SoftLabel]
    marked: Sequence[SoftLabel]
    length: int


def calibrate(answers: Iterable[RatedAnswer]) -> dict[str, Calibration]:
    """Return the calibration of each language by code; of those in which nothing was found, none.

    Long answers count more than short ones, by the root of their length: by the characters alone
    one answer that repeats itself speaks for its language.
    """
    by_language: dict[str, list[RatedAnswer]] = defaultdict(list)
    for answer in answers:
        if answer.found:
            by_language[answer.lang].append(answer)
    return {lang: _fit(rated) for lang, rated in sorted(by_language.items())}


def _fit(answers: Sequence[RatedAnswer]) -> Calibration:
    """Return the most likely calibration, found by Newton's method."""
    probs, shares, weights = (
        np.concatenate(part) for part in zip(*map(_found, answers), strict=True)
    )
    weights = weights / weights.mean()
    seen = np.stack([np.ones(len(probs)), _logits(probs)])
    plain = np.array(_PLAIN)
    fitted = plain
    for _ in range(_STEPS):
        said = 1 / (1 + np.exp(-fitted @ seen))
        slope = seen @ (weights * (said - shares)) + _PRIOR * (fitted - plain)
        curve = (seen * weights * said * (1 - said)) @ seen.T + _PRIOR * np.eye(2)
        step = np.linalg.solve(curve, slope)
        fitted = fitted - step
        if np.abs(step).max() < 1e-9:
            break
    return Calibration(*(round(float(number), 6) for number in fitted))


def _found(answer: RatedAnswer) -> tuple[Column, Column, Column]:
    """Return probabilities, shares and weights of the characters with a probability."""
    probs, shares = np.zeros(answer.length), np.zeros(answer.length)
    for values, labels in ((probs, answer.found), (shares, answer.marked)):
        for start, end, prob in labels:
            values[start:end] = prob
    rated = probs > 0
    return probs[rated], shares[rated], np.full(int(rated.sum()), answer.length**-0.5)


def _logits(probs: Column) -> Column:
    inside = np.clip(probs, _EDGE, 1 - _EDGE)
    return np.asarray(np.log(inside / (1 - inside)), dtype=np.float64)

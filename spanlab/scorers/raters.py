"""How far each person's marks can be relied on, without knowing the truth.

Dawid & Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm"
(Applied Statistics 28, 1979), for marks that are there or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ROUNDS: Final = 500
_CLOSE: Final = 1e-9


class RaterModel(NamedTuple):
    """Each rater's sensitivity and specificity, the share of marks that are true, posteriors."""

    sensitivity: Array
    specificity: Array
    prevalence: float
    posterior: Array


def dawid_skene(marks: Array, counts: Array, prior: float = 1.0) -> RaterModel:
    """Estimate raters and truth together by expectation maximisation, begun at the majority.

    Args:
        marks: a row for each kind of unit, a column for each rater: 1 marked, 0 not, NaN unseen.
        counts: how many units of each kind there are.
        prior: units that each rater is thought to have had right and wrong before, so that few
            marks are no certainty; 0 for maximum likelihood.

    Returns:
        Of the two solutions that mirror each other that in which most raters beat chance.
    """
    seen = ~np.isnan(marks)
    yes = np.where(seen, marks, 0.0)
    no = np.where(seen, 1 - yes, 0.0)
    posterior = yes.sum(1) / np.maximum(seen.sum(1), 1)
    for _ in range(_ROUNDS):
        true, false = counts * posterior, counts * (1 - posterior)
        sensitivity = (true @ yes + prior) / np.maximum(true @ seen + 2 * prior, 1e-300)
        specificity = (false @ no + prior) / np.maximum(false @ seen + 2 * prior, 1e-300)
        prevalence = true.sum() / counts.sum()
        sens, spec, share = (
            np.clip(value, _CLOSE, 1 - _CLOSE) for value in (sensitivity, specificity, prevalence)
        )
        odds = yes @ np.log(sens / (1 - spec)) + no @ np.log((1 - sens) / spec)
        updated = 1 / (1 + np.exp(-np.clip(odds + np.log(share / (1 - share)), -500, 500)))
        moved = abs(updated - posterior).max()
        posterior = updated
        if moved < _CLOSE:
            break
    return RaterModel(sensitivity, specificity, float(prevalence), posterior)


def pattern_counts(
    patterns: Mapping[tuple[bool | None, ...], float],
) -> tuple[Array, Array]:
    """Return kinds of units and their numbers as ``dawid_skene`` takes them; None is unseen."""
    rows: Sequence[tuple[bool | None, ...]] = list(patterns)
    marks = np.array([[np.nan if mark is None else float(mark) for mark in row] for row in rows])
    return marks, np.array([patterns[row] for row in rows], dtype=float)

"""Probabilities as people's labels have them: temperature scaling or isotonic regression.

Guo et al. 2017, "On Calibration of Modern Neural Networks"; Zadrozny and Elkan 2002. Both are
learnt on words: how probable the checkpoint finds each, and the share of people who marked it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from spanlab.schema import FrozenModel, Probability
from spanlab.settings import read_json

Method = Literal["temperature", "isotonic"]
Values = NDArray[np.float64]

_CLOSEST: Final = 1e-6  # to 0 and 1 that a probability counts as, so that it has a logit
_GOLDEN: Final = (5**0.5 - 1) / 2


class WordCalibration(FrozenModel):
    """What a word's probability becomes; ``threshold`` is the probability from which it is hard.

    ``temperature`` divides the logit. ``points`` are where an isotonic regression rises: between
    them it is linear. ``checkpoint`` and ``sha256`` say for which weights it was learnt.
    """

    kind: Literal["spanlab-word-calibration"] = "spanlab-word-calibration"
    method: Method
    temperature: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1.0
    points: tuple[tuple[Probability, Probability], ...] = ()
    threshold: Probability = 0.5
    checkpoint: str = ""
    sha256: str = ""
    items: int = 0
    words: int = 0

    @classmethod
    def read(cls, path: Path) -> WordCalibration:
        """Read a calibration that ``spanlab calibrate`` wrote.

        Raises:
            InputError: the file cannot be read or is none.
        """
        return read_json(cls, path, "a calibration (`spanlab calibrate` writes one)")

    def apply(self, probs: Values) -> Values:
        """Return the calibrated probabilities, in [0, 1]."""
        if self.method == "temperature":
            return _scaled(probs, self.temperature)
        xs, ys = np.array(self.points or ((0.0, 0.0), (1.0, 1.0))).T
        return np.asarray(np.interp(probs, xs, ys), dtype=np.float64)


def fit_temperature(probs: Values, shares: Values, weights: Values) -> WordCalibration:
    """Return the temperature with the least cross-entropy between probabilities and shares.

    Args:
        probs: of words, in [0, 1].
        shares: of the people who marked each word, in [0, 1].
        weights: of the words, for example their characters.
    """

    def loss(logarithm: float) -> float:
        said = _scaled(probs, float(np.exp(logarithm)))
        return -float(np.sum(weights * (shares * np.log(said) + (1 - shares) * np.log1p(-said))))

    return WordCalibration(method="temperature", temperature=float(np.exp(_least(loss, -4.0, 4.0))))


def fit_isotonic(probs: Values, shares: Values, weights: Values) -> WordCalibration:
    """Return the rising function that is closest to the shares, by least squares.

    Arguments are those of ``fit_temperature``. Neighbours that would fall are pooled.
    """
    xs, at = np.unique(probs, return_inverse=True)
    sums, sizes = np.bincount(at, shares * weights), np.bincount(at, weights)
    blocks: list[tuple[float, float, float, float]] = []  # least and greatest x, sum of y, weight
    for x, share, weight in zip(xs.tolist(), sums.tolist(), sizes.tolist(), strict=True):
        block = (x, x, share, weight)
        while blocks and blocks[-1][2] * block[3] > block[2] * blocks[-1][3]:
            low, _, total, size = blocks.pop()
            block = (low, block[1], total + block[2], size + block[3])
        blocks.append(block)
    points: dict[float, float] = {}
    for low, high, total, size in blocks:
        points[low] = points[high] = min(max(total / size, 0.0), 1.0)
    return WordCalibration(method="isotonic", points=tuple(points.items()))


FIT: Final[dict[Method, Callable[[Values, Values, Values], WordCalibration]]] = {
    "temperature": fit_temperature,
    "isotonic": fit_isotonic,
}


def _scaled(probs: Values, temperature: float) -> Values:
    bounded = np.clip(probs, _CLOSEST, 1 - _CLOSEST)
    logits = np.log(bounded) - np.log1p(-bounded)
    said = 1 / (1 + np.exp(np.clip(-logits / temperature, -700, 700)))
    return np.asarray(np.clip(said, 1e-12, 1 - 1e-12), dtype=np.float64)


def _least(loss: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one minimum is least, by golden sections."""
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [loss(each) for each in inner]
    for _ in range(60):
        if values[0] < values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - _GOLDEN * (high - low)
            values[0] = loss(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + _GOLDEN * (high - low)
            values[1] = loss(inner[1])
    return (low + high) / 2

"""From probabilities of tokens to words to spans, by one rule.

1. A character is as probable to be hallucinated as the most probable token that holds it.
2. A word (as the language has words; a sign of a script without spaces is one) is as probable as
   the mean of its characters. White space belongs to no word, what no token holds counts for
   nothing.
3. The word's probability is calibrated, where a calibration is given.
4. Neighbouring words from the threshold on are one span, which is hard; neighbouring words from
   the floor on up to the threshold are one span, which is not. A span is as probable as the mean of
   its words, by characters; one of punctuation alone is none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from spanlab.base.fields import FrozenModel
from spanlab.base.settings import read_json
from spanlab.schema import Probability
from spanlab.text.extents import Extent
from spanlab.text.tokens import tokens

Probabilities = NDArray[np.float64]


class RatedWords(NamedTuple):
    """The words of an answer, and how probable it is in [0, 1] that each is hallucinated."""

    places: tuple[Extent, ...]
    probs: Probabilities


class MarkedExtent(NamedTuple):
    """Characters ``[start, end)`` with their probability; ``hard`` if taken for hallucinated."""

    start: int
    end: int
    prob: float
    hard: bool


def rate_words(answer: str, lang: str, rated: Sequence[tuple[Extent, float]]) -> RatedWords:
    """Return the words of an answer with their probabilities.

    Args:
        answer: the answer.
        lang: its language, BCP 47.
        rated: the characters that each token holds, and its probability of being hallucinated.

    Returns:
        Words in order, those without a rated character with probability 0.
    """
    characters = np.full(len(answer), np.nan)
    for (start, end), prob in rated:
        held = characters[start:end]
        np.fmax(held, prob, out=held)
    is_rated = ~np.isnan(characters)
    sums = np.concatenate(([0.0], np.cumsum(np.where(is_rated, characters, 0.0))))
    counts = np.concatenate(([0], np.cumsum(is_rated)))
    places = tuple(tokens(answer, lang))
    if not places:
        return RatedWords((), np.empty(0))
    starts, ends = np.array(places).T
    held_by = np.maximum(counts[ends] - counts[starts], 1)
    return RatedWords(places, np.clip((sums[ends] - sums[starts]) / held_by, 0.0, 1.0))


def marked(answer: str, words: RatedWords, floor: float, threshold: float) -> list[MarkedExtent]:
    """Return the spans that words amount to, in order; none where all are below the floor."""
    probs: list[float] = words.probs.tolist()
    bands = [2 if prob >= threshold else 1 if prob >= floor else 0 for prob in probs]
    extents = []
    for band, run in groupby(range(len(bands)), bands.__getitem__):
        numbers = list(run)
        start, end = words.places[numbers[0]].start, words.places[numbers[-1]].end
        if band and any(
            unicodedata.category(letter)[0] not in "PZC" for letter in answer[start:end]
        ):
            lengths = [words.places[at].end - words.places[at].start for at in numbers]
            total = sum(probs[at] * size for at, size in zip(numbers, lengths, strict=True))
            prob = min(total / sum(lengths), 1.0)
            extents.append(MarkedExtent(start, end, round(prob, 3), band == 2))
    return extents


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
        predicted = _scaled(probs, float(np.exp(logarithm)))
        return -float(
            np.sum(weights * (shares * np.log(predicted) + (1 - shares) * np.log1p(-predicted)))
        )

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
    predicted = 1 / (1 + np.exp(np.clip(-logits / temperature, -700, 700)))
    return np.asarray(np.clip(predicted, 1e-12, 1 - 1e-12), dtype=np.float64)


def _least(loss: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one minimum is least, by golden sections."""
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [loss(temperature) for temperature in inner]
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

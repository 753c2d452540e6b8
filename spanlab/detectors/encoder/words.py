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
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.extents import Extent
from spanlab.mappers import tokens

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
    known = ~np.isnan(characters)
    sums = np.concatenate(([0.0], np.cumsum(np.where(known, characters, 0.0))))
    counts = np.concatenate(([0], np.cumsum(known)))
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
    found = []
    for band, run in groupby(range(len(bands)), bands.__getitem__):
        numbers = list(run)
        start, end = words.places[numbers[0]].start, words.places[numbers[-1]].end
        if band and any(unicodedata.category(each)[0] not in "PZC" for each in answer[start:end]):
            lengths = [words.places[at].end - words.places[at].start for at in numbers]
            total = sum(probs[at] * size for at, size in zip(numbers, lengths, strict=True))
            prob = min(total / sum(lengths), 1.0)
            found.append(MarkedExtent(start, end, round(prob, 3), band == 2))
    return found

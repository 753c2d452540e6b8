"""Features of a word from its neighbours and its sentence: annotators mark phrases, not words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.links import Column

_WIDTHS = (2, 6)  # standard deviations, in words
_OUTSIDE = -1.0  # beyond the answer's ends
_MOST = 10.0  # facts are counted up to here


class Sides(NamedTuple):
    """Per word: whether it is a number or name, other content, known at all, in the passages."""

    fact: NDArray[np.bool_]
    content: NDArray[np.bool_]
    known: NDArray[np.bool_]
    linked: NDArray[np.bool_]


def support(words: Sides, sentence: NDArray[np.int64]) -> dict[str, Column]:
    """Return how many facts each word's sentence states, and what share is known (-1 for none).

    A sentence whose numbers and names are all in the passages is mostly right, even where its
    other words do not. ``sentence`` has the number of each word's sentence.
    """

    def per_sentence(column: NDArray[np.bool_]) -> Column:
        counts = np.bincount(sentence, column.astype(np.float64))
        return np.asarray(counts[sentence], dtype=np.float64)

    wrong = words.fact & ~words.known
    facts, false = per_sentence(words.fact), per_sentence(wrong)
    content, held = per_sentence(words.content), per_sentence(words.content & words.linked)
    return {
        "sentence_facts": np.minimum(facts, _MOST),
        "sentence_facts_wrong": np.minimum(false, _MOST),
        "sentence_facts_known": np.where(facts > 0, (facts - false) / np.maximum(facts, 1), -1.0),
        "sentence_held": (held + 0.5) / (content + 1),
        "facts_wrong": np.full(len(facts), min(float(wrong.sum()), _MOST)),
    }


def neighbours(columns: Mapping[str, Column], chosen: Sequence[str]) -> dict[str, Column]:
    """Return the chosen columns of the words before and after each word."""
    found: dict[str, Column] = {}
    for name in chosen:
        column = columns[name]
        found[f"{name}_before"] = np.r_[_OUTSIDE, column[:-1]]
        found[f"{name}_after"] = np.r_[column[1:], _OUTSIDE]
    return found


def smoothed(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return every column averaged over the words around, by Gaussian weights of two widths."""
    table = np.stack(list(columns.values()), axis=1)
    found: dict[str, Column] = {}
    for width in _WIDTHS:
        averaged = _average(table, width)
        found |= {f"{name}_{width}": averaged[:, at] for at, name in enumerate(columns)}
    return found


def _average(table: Column, width: int) -> Column:
    total = table.copy()
    weights = np.ones(len(table))
    for step in range(1, min(3 * width, len(table) - 1) + 1):
        factor = np.exp(-(step**2) / (2 * width**2))
        total[step:] += factor * table[:-step]
        total[:-step] += factor * table[step:]
        weights[step:] += factor
        weights[:-step] += factor
    return np.asarray(total / weights[:, None], dtype=np.float64)

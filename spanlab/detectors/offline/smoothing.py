"""A word's neighbours as features of the word: annotators mark phrases, not words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spanlab.detectors.offline.links import Column

_WIDTHS = (2, 6)  # standard deviations, in words
_OUTSIDE = -1.0  # beyond the answer's ends


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

"""Spearman correlation of two piecewise constant functions, without looking at characters."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from spanlab.labels import Soft

_DIGITS = 8  # the shared task's scorer calls a vector constant when it is so after rounding


def spearman(x: Sequence[Soft], y: Sequence[Soft], length: int) -> float:
    """Return Spearman's rank correlation of two soft labellings over all characters.

    Characters outside every interval have probability 0; ties share their mean rank. 1.0 means
    that both order all characters alike, 0.0 that the orders have nothing to do with each other,
    -1.0 that one is the other reversed. Where a labelling gives all characters the same
    probability (after rounding to 8 digits) the correlation is undefined, and the shared task's
    rule holds: 1.0 if both are constant, whatever their values, else 0.0. An empty answer counts
    as constant, so it scores 1.0.

    Ranks are counted in whole numbers (twice the distance from the mean rank), so only the last
    division and square root round.

    Args:
        x: flattened soft labels within ``[0, length)``.
        y: likewise.
        length: number of characters.
    """
    x_sizes, y_sizes = _sizes(x, length), _sizes(y, length)
    x_constant, y_constant = _is_constant(x_sizes), _is_constant(y_sizes)
    if x_constant or y_constant:
        return float(x_constant and y_constant)
    x_ranks, y_ranks = _ranks(x_sizes, length), _ranks(y_sizes, length)
    x_zero, y_zero = x_ranks[0.0], y_ranks[0.0]
    # Ranks sum to 0, so with a and b the ranks of probability 0:
    # sum(rx * ry) = sum((rx - a) * (ry - b)) - n * a * b, whose terms are 0 outside common spans.
    covariance = -length * x_zero * y_zero
    for size, x_prob, y_prob in _common(x, y):
        covariance += size * (x_ranks[x_prob] - x_zero) * (y_ranks[y_prob] - y_zero)
    x_variance = sum([size * x_ranks[prob] ** 2 for prob, size in x_sizes.items()])
    y_variance = sum([size * y_ranks[prob] ** 2 for prob, size in y_sizes.items()])
    return max(-1.0, min(1.0, covariance / sqrt(x_variance * y_variance)))


def _sizes(soft: Sequence[Soft], length: int) -> dict[float, int]:
    """How many characters have each probability; 0.0 always stands, perhaps with none."""
    sizes = {0.0: length}
    for start, end, prob in soft:
        sizes[prob] = sizes.get(prob, 0) + end - start
        sizes[0.0] -= end - start
    return sizes


def _is_constant(sizes: dict[float, int]) -> bool:
    return len({round(prob, _DIGITS) for prob, size in sizes.items() if size}) <= 1


def _ranks(sizes: dict[float, int], length: int) -> dict[float, int]:
    """Twice the distance of each probability's mean rank from the mean of all ranks."""
    ranks: dict[float, int] = {}
    below = 0
    for prob in sorted(sizes):
        ranks[prob] = 2 * below + sizes[prob] - length
        below += sizes[prob]
    return ranks


def _common(x: Sequence[Soft], y: Sequence[Soft]) -> list[tuple[int, float, float]]:
    """Stretches that both cover: number of characters, probability in x, probability in y."""
    stretches: list[tuple[int, float, float]] = []
    i = j = 0
    while i < len(x) and j < len(y):
        x_start, x_end, x_prob = x[i]
        y_start, y_end, y_prob = y[j]
        size = min(x_end, y_end) - max(x_start, y_start)
        if size > 0:
            stretches.append((size, x_prob, y_prob))
        if x_end <= y_end:
            i += 1
        else:
            j += 1
    return stretches

"""Finds the leaf of each tree that a row ends in, for all trees at once.

Every node's question is asked of every row, whether the row reaches the node or not: that is one
lookup and one comparison over plain arrays, where walking down asks for a few numbers at a time. A
yes rules out the leaves to the node's left; the row ends in the leftmost leaf that nothing rules
out. The leaves of a tree are the bits of one number. After Lucchese et al. 2015, "QuickScorer: A
Fast Algorithm to Rank Documents with Additive Ensembles of Regression Trees", section 3, without
its sorting of the questions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MOST_LEAVES = 64  # bits of the widest number

Whole = NDArray[np.int64]
Bits = NDArray[np.unsignedinteger[Any]]


class Shapes(NamedTuple):
    """How trees branch: which nodes ask, and the number of ``leaves`` under each node.

    They are those of its tree from number ``first`` on, counted from the left.
    """

    asks: NDArray[np.bool_]
    leaves: Whole
    first: Whole


def shapes(
    roots: NDArray[np.int32], threshold: NDArray[np.float64], child: NDArray[np.int32]
) -> Shapes | None:
    """Follow all trees down from their roots; the arguments are the fields of ``Trees``.

    Returns:
        Their shapes; None if some node belongs to no tree or to more than one, or if a tree has
        more than 64 leaves.
    """
    asks = ~np.isinf(threshold)
    left = child.astype(np.int64)
    levels = [roots.astype(np.int64)]
    reached = len(roots)
    while len(parents := levels[-1][asks[levels[-1]]]):
        levels.append(np.concatenate([left[parents], left[parents] + 1]))
        reached += len(levels[-1])
        if reached > len(asks):
            return None
    if not np.array_equal(np.sort(np.concatenate(levels)), np.arange(len(asks))):
        return None
    leaves = (~asks).astype(np.int64)
    for level in reversed(levels):
        parents = level[asks[level]]
        leaves[parents] = leaves[left[parents]] + leaves[left[parents] + 1]
    first = np.zeros(len(asks), dtype=np.int64)
    for level in levels:
        parents = level[asks[level]]
        first[left[parents]] = first[parents]
        first[left[parents] + 1] = first[parents] + leaves[left[parents]]
    return Shapes(asks, leaves, first) if leaves.max() <= _MOST_LEAVES else None


class Compiled(NamedTuple):
    """Trees as arrays of ``(questions of a tree, trees)``, flattened, then the leaves.

    ``feature`` and ``threshold`` are the questions, ``rest`` the leaves that a yes leaves over;
    trees with fewer questions than others get some whose answer is always no. ``value`` has a row
    of leaves for each tree, ``row`` where that row begins.
    """

    trees: int
    feature: NDArray[np.intp]
    threshold: NDArray[np.float32]
    rest: Bits
    value: NDArray[np.float64]
    row: Whole

    def sum(self, columns: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the sum over all trees, for each of the rows whose ``columns`` are given."""
        yes = columns.take(self.feature, axis=0) > self.threshold
        one = self.rest.dtype.type(1)
        left = yes.astype(self.rest.dtype)
        left -= one  # no: all bits; yes: none, but those that are left over
        left |= self.rest
        open_ = np.bitwise_and.reduce(left.reshape(-1, self.trees, columns.shape[1]), axis=0)
        leaf = np.bitwise_count((open_ & -open_) - one)
        return np.asarray(self.value.take(leaf + self.row).sum(axis=0), dtype=np.float64)


def compiled(
    roots: NDArray[np.int32],
    feature: NDArray[np.int16],
    threshold: NDArray[np.float64],
    child: NDArray[np.int32],
    value: NDArray[np.float64],
) -> Compiled:
    """Prepare sound trees for evaluation; the arguments are the fields of ``Trees``.

    Features are numbers of 32 bits: a threshold is rounded down to such a number, which answers
    every question as before.
    """
    found = shapes(roots, threshold, child)
    if found is None:
        raise ValueError("trees that do not branch as trees do")
    asks, leaves, first = found
    nodes, ends = np.flatnonzero(asks), np.flatnonzero(~asks)
    trees = len(roots)
    tree = np.repeat(np.arange(trees), np.diff(np.r_[roots, len(value)]))
    sizes = np.bincount(tree[nodes], minlength=trees)
    number = np.arange(len(nodes)) - np.r_[0, np.cumsum(sizes)][tree[nodes]]
    place = number * trees + tree[nodes]
    questions = max(int(sizes.max()), 1) * trees
    width = int(leaves.max())
    kind = np.uint16 if width <= 16 else np.uint64

    asked = np.zeros(questions, dtype=np.intp)
    asked[place] = feature[nodes]
    least = np.full(questions, np.inf, dtype=np.float32)
    least[place] = _down(threshold[nodes])
    rest: Bits = np.full(questions, np.iinfo(kind).max, dtype=kind)
    left = child[nodes]
    rest[place] = (~_bits(first[left], leaves[left])).astype(kind)
    held = np.zeros((trees, width))
    held[tree[ends], first[ends]] = value[ends]
    row = (np.arange(trees, dtype=np.int64) * width)[:, None]
    return Compiled(trees, asked, least[:, None], rest[:, None], held.ravel(), row)


def _down(values: NDArray[np.float64]) -> NDArray[np.float32]:
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)


def _bits(first: Whole, count: Whole) -> NDArray[np.uint64]:
    """Return numbers with ``count`` bits set from bit ``first`` on; fewer than 64 of them."""
    one = np.uint64(1)
    return ((one << count.astype(np.uint64)) - one) << first.astype(np.uint64)

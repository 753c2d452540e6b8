"""What rates words, as plain arrays: trees and perceptrons, in numpy.

Every node's question is asked of every row, whether the row reaches the node or not: that is one
lookup and one comparison over plain arrays, where walking down asks for a few numbers at a time. A
yes rules out the leaves to the node's left; the row ends in the leftmost leaf that nothing rules
out. The leaves of a tree are the bits of one number. After Lucchese et al. 2015, "QuickScorer: A
Fast Algorithm to Rank Documents with Additive Ensembles of Regression Trees", section 3, without
its sorting of the questions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.links import Column
from spanlab.errors import InputError

_TREE_ROWS = (
    128  # evaluated at once, so that what is being worked on stays in the processor's cache
)


_TREE_FIELDS = {
    "roots": np.int32, "feature": np.int16, "threshold": np.float64, "child": np.int32,
    "value": np.float64, "base": np.float64,
}  # fmt: skip


@dataclass(frozen=True)
class Trees:
    """A sum of regression trees.

    Node ``n`` asks whether column ``feature[n]`` is greater than ``threshold[n]``; the answer no
    leads to node ``child[n]``, yes to the one after it. A leaf is its own child with an infinite
    threshold and holds a ``value``. ``roots`` are the trees' first nodes, in order, and ``base`` a
    constant.
    """

    names: tuple[str, ...]
    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float64]
    child: NDArray[np.int32]
    value: NDArray[np.float64]
    base: NDArray[np.float64]

    def predict(self, table: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return one number per row of ``table``, not clipped; ``names`` are its columns.

        Raises:
            InputError: a column that the trees ask for is missing.
        """
        wanted = columns(self.names, names) or [0]  # trees that ask nothing ask any
        chosen = np.ascontiguousarray(table[:, wanted].T, dtype=np.float32)
        parts = [
            self._compiled.sum(chosen[:, low : low + _TREE_ROWS])
            for low in range(0, chosen.shape[1], _TREE_ROWS)
        ]
        return np.concatenate(parts) + self.base[0] if parts else np.zeros(0)

    @cached_property
    def _compiled(self) -> Compiled:
        return compiled(self.roots, self.feature, self.threshold, self.child, self.value)

    def arrays(self, prefix: str) -> dict[str, NDArray[np.generic]]:
        """Return the trees as named arrays for a file."""
        return arrays_of(self, prefix, _TREE_FIELDS)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> Trees:
        """Build trees from the result of ``arrays``, checked so that every node is sound.

        Raises:
            InputError: an array is missing, of another type or points outside.
        """
        fields, names = stored(arrays, prefix, _TREE_FIELDS, "trees")
        nodes = len(fields["value"])
        sound = (
            all(fields[field].dtype == kind for field, kind in _TREE_FIELDS.items())
            and all(len(fields[field]) == nodes for field in ("feature", "threshold", "child"))
            and nodes > 0
            and bool(np.all((fields["feature"] >= 0) & (fields["feature"] < len(names))))
            and bool(np.all((fields["child"] >= 0) & (fields["child"] < nodes)))
            and bool(np.all((fields["roots"] >= 0) & (fields["roots"] < nodes)))
            and bool(np.all(np.isinf(fields["threshold"]) | (fields["child"] + 1 < nodes)))
            and shapes(fields["roots"], fields["threshold"], fields["child"]) is not None
        )
        if not sound:
            raise InputError("the model file's trees are damaged", field=prefix)
        return cls(names=names, **fields)


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


_LAYER_ROWS = (
    40  # multiplied at once: for so few, linear algebra wakes no second thread that spins on
)


_FAR = 4.0  # standard deviations from the mean that count; further away is as far


_LAYER_FIELDS = ("middle", "spread", "inner", "inner_bias", "outer", "outer_bias")


Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class Perceptrons:
    """The mean of perceptrons with one hidden layer each, whose weights are concatenated.

    Their inputs are the columns less their ``middle``, divided by their ``spread``. ``inner``
    (columns × hidden units) and ``inner_bias`` lead to the hidden units, whose activation is the
    hyperbolic tangent; ``outer`` (one number per hidden unit) and ``outer_bias`` (one per
    perceptron) to the results, which are averaged. Stored in 32 bits and computed in 64, so that
    all machines give the same.
    """

    names: tuple[str, ...]
    middle: Numbers
    spread: Numbers
    inner: Numbers
    inner_bias: Numbers
    outer: Numbers
    outer_bias: Numbers

    def predict(self, table: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return one number per row of ``table``, not clipped; ``names`` are its columns.

        Raises:
            InputError: a column that was learnt from is missing.
        """
        wanted = table[:, columns(self.names, names)]
        seen = scaled(wanted, self.middle, self.spread).astype(np.float64)
        parts = [
            self._mean(seen[low : low + _LAYER_ROWS]) for low in range(0, len(seen), _LAYER_ROWS)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _mean(self, seen: NDArray[np.float64]) -> NDArray[np.float64]:
        inner, inner_bias, outer, outer_bias = self._each
        hidden = np.tanh(seen @ inner + inner_bias)
        return np.asarray((hidden @ outer + outer_bias)[:, :, 0].mean(axis=0), dtype=np.float64)

    @cached_property
    def _each(self) -> tuple[NDArray[np.float64], ...]:
        """The weights, perceptron by perceptron."""
        members, columns = len(self.outer_bias), len(self.names)
        inner = self.inner.astype(np.float64).reshape(columns, members, -1).transpose(1, 0, 2)
        return (
            np.ascontiguousarray(inner),
            self.inner_bias.astype(np.float64).reshape(members, 1, -1),
            self.outer.astype(np.float64).reshape(members, -1, 1),
            self.outer_bias.astype(np.float64).reshape(members, 1, 1),
        )

    def arrays(self, prefix: str) -> dict[str, NDArray[np.generic]]:
        """Return the perceptrons as named arrays for a file."""
        return arrays_of(self, prefix, _LAYER_FIELDS)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> Perceptrons:
        """Build perceptrons from the result of ``arrays``.

        Raises:
            InputError: an array is missing, of another type or does not fit the others.
        """
        fields, names = stored(arrays, prefix, _LAYER_FIELDS, "perceptrons")
        hidden = fields["outer"].shape
        sound = (
            all(array.dtype == np.float32 for array in fields.values())
            and all(bool(np.isfinite(array).all()) for array in fields.values())
            and fields["middle"].shape == fields["spread"].shape == (len(names),)
            and bool(np.all(fields["spread"] > 0))
            and len(hidden) == 1
            and fields["inner"].shape == (len(names), *hidden)
            and fields["inner_bias"].shape == hidden
            and fields["outer_bias"].ndim == 1
            and len(fields["outer_bias"]) > 0
            and hidden[0] % len(fields["outer_bias"]) == 0
        )
        if not sound:
            raise InputError("the model file's perceptrons are damaged", field=prefix)
        return cls(names=names, **fields)


def scaled(table: Numbers, middle: Numbers, spread: Numbers) -> Numbers:
    """Return a table as perceptrons see it."""
    return np.asarray(np.clip((table - middle) / spread, -_FAR, _FAR), dtype=np.float32)


_EXPECTED = "a model of `spanlab train-offline` of this version"


@dataclass(frozen=True)
class Rows:
    """Words to learn from: features, shares, weights, and the item each comes from."""

    names: tuple[str, ...]
    table: NDArray[np.float32]
    target: Column
    weight: Column
    group: NDArray[np.int64]

    def bag(self, seed: int) -> Rows:
        """Return the words of items drawn with replacement, weighed by how often, 1 on average."""
        items = int(self.group.max()) + 1
        rng = np.random.default_rng(seed)
        drawn = np.bincount(rng.integers(0, items, items), minlength=items)
        weight = self.weight * drawn[self.group]
        used = weight > 0
        return Rows(
            self.names, self.table[used], self.target[used],
            weight[used] / weight[used].mean(), self.group[used],
        )  # fmt: skip


@lru_cache(maxsize=16)
def columns(wanted: tuple[str, ...], names: tuple[str, ...]) -> list[int]:
    """Return the indices of the columns that a model asks for among ``names``.

    Raises:
        InputError: one is missing.
    """
    places = {name: place for place, name in enumerate(names)}
    unknown = sorted(set(wanted) - set(places))
    if unknown:
        raise InputError(
            "the model was trained by another version",
            found=f"features {', '.join(unknown[:3])}",
            expected=_EXPECTED,
        )
    return [places[name] for name in wanted]


def arrays_of(part: Any, prefix: str, fields: Collection[str]) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a part of a model and the names of its columns, for ``stored``."""
    found = {f"{prefix}.{field}": getattr(part, field) for field in fields}
    return found | {f"{prefix}.names": np.array(part.names)}


def stored(
    arrays: Mapping[str, NDArray[np.generic]], prefix: str, fields: Collection[str], what: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arrays of a part of a model, and the names of the columns that it asks for.

    Raises:
        InputError: one is missing.
    """
    try:
        found = {field: np.asarray(arrays[f"{prefix}.{field}"]) for field in fields}
        return found, tuple(str(name) for name in np.atleast_1d(arrays[f"{prefix}.names"]))
    except KeyError as error:
        raise InputError(
            f"the model file lacks {what}", field=prefix, found=error, expected=_EXPECTED
        ) from error

"""What rates words, as plain arrays: trees and small neural networks, in numpy."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.systems.offline.links import Column

_TREE_ROWS = (
    128  # evaluated at once, so that what is being worked on stays in the processor's cache
)

_TREE_FIELDS = {
    "roots": np.int32, "feature": np.int16, "threshold": np.float64, "child": np.int32,
    "value": np.float64, "base": np.float64,
}  # fmt: skip


@dataclass(frozen=True)
class TreeRater:
    """A sum of regression trees.

    Node ``n`` asks whether column ``feature[n]`` is greater than ``threshold[n]``; the answer no
    leads to node ``child[n]``, yes to the one after that; both come behind ``n``. A leaf is its own
    child with an infinite threshold and holds a ``value``. ``roots`` are the trees' first nodes, in
    order, and ``base`` a constant.
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
            self._sum(chosen[:, low : low + _TREE_ROWS])
            for low in range(0, chosen.shape[1], _TREE_ROWS)
        ]
        return np.concatenate(parts) + self.base[0] if parts else np.zeros(0)

    def _sum(self, chosen: NDArray[np.float32]) -> NDArray[np.float64]:
        """Walk every row down every tree, a level at a time; add up the leaves."""
        rows = chosen.shape[1]
        values = chosen.ravel()
        row = np.tile(np.arange(rows), len(self.roots))
        node = np.repeat(self.roots.astype(np.intp), rows)
        going = np.arange(len(node))
        while len(going := going[self._asks.take(node.take(going))]):
            here = node.take(going)
            asked = values.take(self.feature.take(here).astype(np.intp) * rows + row.take(going))
            node[going] = self.child.take(here) + (asked > self.threshold.take(here))
        leaves = self.value.take(node).reshape(len(self.roots), rows)
        return np.asarray(leaves.sum(axis=0), dtype=np.float64)

    @cached_property
    def _asks(self) -> NDArray[np.bool_]:
        return ~np.isinf(self.threshold)

    def arrays(self, prefix: str) -> dict[str, NDArray[np.generic]]:
        """Return the trees as named arrays for a file."""
        return arrays_of(self, prefix, _TREE_FIELDS)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> TreeRater:
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
            and _are_trees(fields["roots"], ~np.isinf(fields["threshold"]), fields["child"])
        )
        if not sound:
            raise InputError("the model file's trees are damaged", field=prefix)
        return cls(names=names, **fields)


_NET_FIELDS = {
    "mean": np.float32, "scale": np.float32, "weights": np.float32, "bias": np.float32,
    "output": np.float32, "base": np.float32,
}  # fmt: skip
FARTHEST = 4.0  # standard deviations: what a network takes of a feature at most


@dataclass(frozen=True)
class NetRater:
    """A layer of rectified linear units over standardised features, and their weighted sum.

    ``mean`` and ``scale`` are of the columns; ``weights`` are columns × units, ``bias`` and
    ``output`` one number a unit, ``base`` a constant. Several networks are one that has all units.
    """

    names: tuple[str, ...]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    output: NDArray[np.float32]
    base: NDArray[np.float32]

    def predict(self, table: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return one number per row of ``table``, not clipped; ``names`` are its columns.

        Raises:
            InputError: a column that the network asks for is missing.
        """
        seen = standardised(table[:, columns(self.names, names)], self.mean, self.scale)
        units = np.maximum(seen @ self.weights + self.bias, 0)
        return np.asarray(units @ self.output + self.base[0], dtype=np.float64)

    def arrays(self, prefix: str) -> dict[str, NDArray[np.generic]]:
        """Return the network as named arrays for a file."""
        return arrays_of(self, prefix, _NET_FIELDS)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> NetRater:
        """Build a network from the result of ``arrays``, checked so that all shapes fit.

        Raises:
            InputError: an array is missing, of another type or shape, or not finite.
        """
        fields, names = stored(arrays, prefix, _NET_FIELDS, "networks")
        units = len(np.atleast_1d(fields["bias"]))
        shapes = {"mean": (len(names),), "scale": (len(names),), "weights": (len(names), units)}
        shapes |= {"bias": (units,), "output": (units,), "base": (1,)}
        sound = all(
            fields[field].dtype == kind
            and fields[field].shape == shapes[field]
            and bool(np.isfinite(fields[field]).all())
            for field, kind in _NET_FIELDS.items()
        ) and bool(np.all(fields["scale"] > 0))
        if not sound:
            raise InputError("the model file's networks are damaged", field=prefix)
        return cls(names=names, **fields)


def standardised(
    table: NDArray[np.float32], mean: NDArray[np.float32], scale: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return columns as standard deviations from their mean, within ``FARTHEST``."""
    return np.asarray(np.clip((table - mean) / scale, -FARTHEST, FARTHEST), dtype=np.float32)


def _are_trees(roots: NDArray[np.int32], asks: NDArray[np.bool_], child: NDArray[np.int32]) -> bool:
    """Say whether every node is a root or has one parent, before it: so that walks have an end."""
    left = child[asks]
    reached = np.sort(np.concatenate([roots, left, left + 1]))
    behind = bool(np.all(left > np.flatnonzero(asks)))
    return behind and np.array_equal(reached, np.arange(len(asks)))


_EXPECTED = "a model of `spanlab train-offline` of this version"


@dataclass(frozen=True)
class TrainingRows:
    """Words to learn from: features, shares, weights, and the item each comes from."""

    names: tuple[str, ...]
    table: NDArray[np.float32]
    target: Column
    weight: Column
    group: NDArray[np.int64]

    def bag(self, seed: int) -> TrainingRows:
        """Return the words of items drawn with replacement, weighed by how often, 1 on average."""
        items = int(self.group.max()) + 1
        rng = np.random.default_rng(seed)
        drawn = np.bincount(rng.integers(0, items, items), minlength=items)
        weight = self.weight * drawn[self.group]
        used = weight > 0
        return TrainingRows(
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
    arrays = {f"{prefix}.{field}": getattr(part, field) for field in fields}
    return arrays | {f"{prefix}.names": np.array(part.names)}


def stored(
    arrays: Mapping[str, NDArray[np.generic]], prefix: str, fields: Collection[str], what: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arrays of a part of a model, and the names of the columns that it asks for.

    Raises:
        InputError: one is missing.
    """
    try:
        fields_read = {field: np.asarray(arrays[f"{prefix}.{field}"]) for field in fields}
        return fields_read, tuple(str(name) for name in np.atleast_1d(arrays[f"{prefix}.names"]))
    except KeyError as error:
        raise InputError(
            f"the model file lacks {what}", field=prefix, found=error, expected=_EXPECTED
        ) from error

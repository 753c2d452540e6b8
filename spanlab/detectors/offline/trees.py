"""Gradient-boosted trees as plain arrays, evaluated with numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spanlab.errors import InputError

_ROWS = 256  # evaluated at once, so that what is being worked on stays in the processor's cache
_FIELDS = {
    "roots": np.int32, "feature": np.int16, "threshold": np.float64, "child": np.int32,
    "value": np.float64, "base": np.float64,
}  # fmt: skip


@dataclass(frozen=True)
class Trees:
    """A sum of regression trees.

    Node ``n`` asks whether column ``feature[n]`` is greater than ``threshold[n]``; the answer no
    leads to node ``child[n]``, yes to the one after it. A leaf is its own child with an infinite
    threshold and holds a ``value``. ``roots`` are the trees' first nodes, ``base`` a constant, and
    ``depth`` the longest way from a root to a leaf.
    """

    names: tuple[str, ...]
    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float64]
    child: NDArray[np.int32]
    value: NDArray[np.float64]
    base: NDArray[np.float64]
    depth: int

    def predict(self, table: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
        """Evaluate the trees.

        Args:
            table: one row per word.
            names: what the table's columns are; all that the trees ask for must be among them.

        Returns:
            One number per row, not clipped.

        Raises:
            InputError: a column is missing.
        """
        places = {name: place for place, name in enumerate(names)}
        unknown = sorted(set(self.names) - set(places))
        if unknown:
            raise InputError(
                "the model was trained by another version",
                found=f"features {', '.join(unknown[:3])}",
                expected="a model of `spanlab train-offline` of this version",
            )
        columns = [places[name] for name in self.names]
        chosen = np.ascontiguousarray(table[:, columns], dtype=np.float64)
        parts = [self._sum(chosen[low : low + _ROWS]) for low in range(0, len(chosen), _ROWS)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _sum(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        flat = rows.ravel()
        offset = (np.arange(len(rows)) * rows.shape[1])[:, None]
        roots, feature, child = self._indices
        node = np.repeat(roots[None], len(rows), axis=0)
        for _ in range(self.depth):
            yes = flat.take(feature.take(node) + offset) > self.threshold.take(node)
            node = child.take(node) + yes
        return np.asarray(self.value.take(node).sum(axis=1) + self.base[0], dtype=np.float64)

    @cached_property
    def _indices(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Roots, features and children in the type that numpy looks things up with fastest."""
        return (
            self.roots.astype(np.intp), self.feature.astype(np.intp), self.child.astype(np.intp)
        )  # fmt: skip

    def arrays(self, prefix: str) -> dict[str, NDArray[np.generic]]:
        """Return the trees as named arrays for a file."""
        found: dict[str, NDArray[np.generic]] = {
            f"{prefix}.{field}": getattr(self, field) for field in _FIELDS
        }
        found[f"{prefix}.names"] = np.array(self.names)
        found[f"{prefix}.depth"] = np.array([self.depth], dtype=np.int32)
        return found

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> Trees:
        """Build trees from what ``arrays`` gave, checked so that no node leads astray.

        Raises:
            InputError: an array is missing, of another type or points outside.
        """
        try:
            fields = {field: np.asarray(arrays[f"{prefix}.{field}"]) for field in _FIELDS}
            names = tuple(str(name) for name in arrays[f"{prefix}.names"])
            depth = int(np.asarray(arrays[f"{prefix}.depth"], dtype=np.int64)[0])
        except (KeyError, IndexError, ValueError) as error:
            raise InputError("the model file lacks trees", field=prefix, found=error) from error
        nodes = len(fields["value"])
        sound = (
            all(fields[field].dtype == kind for field, kind in _FIELDS.items())
            and all(len(fields[field]) == nodes for field in ("feature", "threshold", "child"))
            and nodes > 0
            and bool(np.all((fields["feature"] >= 0) & (fields["feature"] < len(names))))
            and bool(np.all((fields["child"] >= 0) & (fields["child"] < nodes)))
            and bool(np.all((fields["roots"] >= 0) & (fields["roots"] < nodes)))
            and bool(np.all(np.isinf(fields["threshold"]) | (fields["child"] + 1 < nodes)))
            and 0 <= depth < 100
        )
        if not sound:
            raise InputError("the model file's trees are damaged", field=prefix)
        return cls(names=names, depth=depth, **fields)

"""Gradient-boosted trees as plain arrays, evaluated with numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.leaves import Compiled, compiled, shapes
from spanlab.detectors.offline.rows import arrays_of, columns, stored
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

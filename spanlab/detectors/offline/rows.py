"""Training rows, the columns that a model asks for, and the arrays that a file holds of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.links import Column
from spanlab.errors import InputError

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

"""Words to learn from, and which of them a model learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.links import Column
from spanlab.errors import InputError


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
            self.names,
            self.table[used],
            self.target[used],
            weight[used] / weight[used].mean(),
            self.group[used],
        )


def columns(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return where the columns that a model asks for stand among those there are.

    Raises:
        InputError: one is missing.
    """
    places = {name: place for place, name in enumerate(names)}
    unknown = sorted(set(wanted) - set(places))
    if unknown:
        raise InputError(
            "the model was trained by another version",
            found=f"features {', '.join(unknown[:3])}",
            expected="a model of `spanlab train-offline` of this version",
        )
    return [places[name] for name in wanted]

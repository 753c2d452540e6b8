"""Small neural networks as plain arrays, evaluated with numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.rows import arrays_of, columns, stored
from spanlab.errors import InputError

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

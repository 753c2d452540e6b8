"""Perceptrons on scikit-learn, and their weights turned into plain arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanlab.detectors.offline.perceptrons import Numbers, Perceptrons, scaled
from spanlab.detectors.offline.rows import Rows
from spanlab.errors import missing_package

if TYPE_CHECKING:
    from sklearn.neural_network import MLPRegressor

_LEAST_SPREAD = 1e-3  # of a column that is nearly the same everywhere


@dataclass(frozen=True)
class Backpropagation:
    """Settings of the perceptrons: number of ``members``, each with its own initial weights."""

    members: int = 8
    hidden: int = 48
    rounds: int = 20
    decay: float = 1.0
    rate: float = 0.002
    batch: int = 256


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of each column."""

    middle: Numbers
    spread: Numbers

    @classmethod
    def of(cls, table: Numbers) -> Scale:
        """Measure a table."""
        spread = table.std(axis=0, dtype=np.float64) + _LEAST_SPREAD
        middle = table.mean(axis=0, dtype=np.float64)
        return cls(middle.astype(np.float32), spread.astype(np.float32))

    def apply(self, table: Numbers) -> Numbers:
        """Return a table as perceptrons see it."""
        return scaled(table, self.middle, self.spread)


def propagate(
    rows: Rows, how: Backpropagation, seed: int, on_member: Callable[[], None]
) -> Perceptrons:
    """Train perceptrons and return their mean; ``on_member`` is called after each.

    The same ``seed`` gives the same perceptrons, on machines whose linear algebra rounds alike.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    scale = Scale.of(rows.table)
    models = []
    for member in range(how.members):
        models.append(train(rows, scale, how, seed + member))
        on_member()
    return side_by_side(models, scale, rows.names)


def train(rows: Rows, scale: Scale, how: Backpropagation, seed: int) -> MLPRegressor:
    """Train one perceptron, in one thread, so that sums are repeatable."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise missing_package("training", "scikit-learn", "train") from error
    model = MLPRegressor(
        hidden_layer_sizes=(how.hidden,),
        activation="tanh",
        alpha=how.decay,
        learning_rate_init=how.rate,
        batch_size=min(how.batch, len(rows.target)),
        max_iter=how.rounds,
        n_iter_no_change=how.rounds,
        random_state=seed,
    )
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it ends after so many rounds
        model.fit(scale.apply(rows.table), rows.target, rows.weight / rows.weight.mean())
    return model


def side_by_side(
    models: Sequence[MLPRegressor], scale: Scale, names: tuple[str, ...]
) -> Perceptrons:
    """Turn trained perceptrons into one that gives their mean."""
    return Perceptrons(
        names=names,
        middle=scale.middle,
        spread=scale.spread,
        inner=np.concatenate([model.coefs_[0] for model in models], axis=1),
        inner_bias=np.concatenate([model.intercepts_[0] for model in models]),
        outer=np.concatenate([model.coefs_[1][:, 0] for model in models]),
        outer_bias=np.concatenate([model.intercepts_[1] for model in models]),
    )

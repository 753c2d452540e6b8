"""scikit-learn's models, learnt and kept as plain arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import missing_package
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.raters import (
    Numbers,
    PerceptronRater,
    TrainingRows,
    TreeRater,
    scaled,
)

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.neural_network import MLPRegressor


@dataclass(frozen=True)
class BoostingSettings:
    """Settings of the trees: ``bags`` models, each on items drawn with replacement, averaged."""

    bags: int = 6
    trees: int = 110
    leaves: int = 11
    depth: int = 8
    rate: float = 0.08
    least_words: int = 80
    ridge: float = 5.0
    features: float = 0.25


def boost(
    rows: TrainingRows, how: BoostingSettings, seed: int, on_bag: Callable[[], None]
) -> TreeRater:
    """Fit the models and return their average as one sum of trees.

    The same ``seed`` gives the same trees; ``on_bag`` is called after each model.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    models = []
    for bag in range(how.bags):
        models.append(fit(rows.bag(seed + bag), how, seed + bag))
        on_bag()
    return export(models, rows.names)


def fit(rows: TrainingRows, how: BoostingSettings, seed: int) -> HistGradientBoostingRegressor:
    """Fit one model, in one thread, so that sums are repeatable."""
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise missing_package("training", "scikit-learn", "train") from error
    model = HistGradientBoostingRegressor(
        max_iter=how.trees,
        learning_rate=how.rate,
        max_leaf_nodes=how.leaves,
        max_depth=how.depth,
        min_samples_leaf=how.least_words,
        l2_regularization=how.ridge,
        max_features=how.features,
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(limits=1):
        model.fit(rows.table, rows.target, rows.weight)
    return model


def export(models: list[HistGradientBoostingRegressor], names: tuple[str, ...]) -> TreeRater:
    """Turn fitted models into one sum of trees that predicts their mean.

    Columns that no tree asks for are left out.
    """
    grown: list[Any] = [
        tree.nodes for model in models for predictor in model._predictors for tree in predictor
    ]
    used = sorted({int(f) for nodes in grown for f in nodes["feature_idx"][nodes["is_leaf"] == 0]})
    column = {feature: number for number, feature in enumerate(used)}
    parts = [_tree(nodes, column, 1 / len(models)) for nodes in grown]
    roots = np.cumsum([0, *(len(part.value) for part in parts[:-1])])
    base = float(np.mean([model._baseline_prediction for model in models]))
    return TreeRater(
        names=tuple(names[feature] for feature in used),
        roots=roots.astype(np.int32),
        feature=np.concatenate([part.feature for part in parts]).astype(np.int16),
        threshold=np.concatenate([part.threshold for part in parts]),
        child=np.concatenate(
            [part.child + root for part, root in zip(parts, roots, strict=True)]
        ).astype(np.int32),
        value=np.concatenate([part.value for part in parts]),
        base=np.array([base]),
    )


@dataclass(frozen=True)
class _Tree:
    feature: NDArray[np.int64]
    threshold: Column
    child: NDArray[np.int64]
    value: Column


def _tree(nodes: Any, column: dict[int, int], share: float) -> _Tree:
    """Renumber a tree's nodes so that the right child always follows the left one."""
    place = {0: 0}
    for node in nodes[nodes["is_leaf"] == 0]:
        for child in (int(node["left"]), int(node["right"])):
            place[child] = len(place)
    size = len(place)
    tree = _Tree(
        np.zeros(size, dtype=np.int64), np.full(size, np.inf), np.arange(size), np.zeros(size)
    )
    for old, new in place.items():
        node = nodes[old]
        if node["is_leaf"]:
            tree.value[new] = float(node["value"]) * share
        else:
            tree.feature[new] = column[int(node["feature_idx"])]
            tree.threshold[new] = float(node["num_threshold"])
            tree.child[new] = place[int(node["left"])]
    return tree


_LEAST_SPREAD = 1e-3  # of a column that is nearly the same everywhere


@dataclass(frozen=True)
class PerceptronSettings:
    """Settings of the perceptrons: number of ``members``, each with its own initial weights."""

    members: int = 8
    hidden: int = 48
    rounds: int = 20
    decay: float = 1.0
    rate: float = 0.002
    batch: int = 256


@dataclass(frozen=True)
class ColumnScale:
    """Mean and standard deviation of each column."""

    middle: Numbers
    spread: Numbers

    @classmethod
    def of(cls, table: Numbers) -> ColumnScale:
        """Measure a table."""
        spread = table.std(axis=0, dtype=np.float64) + _LEAST_SPREAD
        middle = table.mean(axis=0, dtype=np.float64)
        return cls(middle.astype(np.float32), spread.astype(np.float32))

    def apply(self, table: Numbers) -> Numbers:
        """Return a table as perceptrons see it."""
        return scaled(table, self.middle, self.spread)


def propagate(
    rows: TrainingRows, how: PerceptronSettings, seed: int, on_member: Callable[[], None]
) -> PerceptronRater:
    """Train perceptrons and return their mean; ``on_member`` is called after each.

    The same ``seed`` gives the same perceptrons, on machines whose linear algebra rounds alike.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    scale = ColumnScale.of(rows.table)
    models = []
    for member in range(how.members):
        models.append(train(rows, scale, how, seed + member))
        on_member()
    return side_by_side(models, scale, rows.names)


def train(
    rows: TrainingRows, scale: ColumnScale, how: PerceptronSettings, seed: int
) -> MLPRegressor:
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
    models: Sequence[MLPRegressor], scale: ColumnScale, names: tuple[str, ...]
) -> PerceptronRater:
    """Turn trained perceptrons into one that gives their mean."""
    return PerceptronRater(
        names=names,
        middle=scale.middle,
        spread=scale.spread,
        inner=np.concatenate([model.coefs_[0] for model in models], axis=1),
        inner_bias=np.concatenate([model.intercepts_[0] for model in models]),
        outer=np.concatenate([model.coefs_[1][:, 0] for model in models]),
        outer_bias=np.concatenate([model.intercepts_[1] for model in models]),
    )

"""scikit-learn's models, learnt and kept as plain arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import missing_package
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.raters import NetRater, TrainingRows, TreeRater, standardised

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor


_LEAST_SCALE = 0.001  # added to standard deviations, of which some are 0


@dataclass(frozen=True)
class BoostingSettings:
    """Settings of the trees: ``bags`` models, each on items drawn with replacement, averaged."""

    bags: int = 3
    trees: int = 200
    leaves: int = 15
    rate: float = 0.06
    least_words: int = 40
    ridge: float = 5.0
    features: float = 0.25


@dataclass(frozen=True)
class NetSettings:
    """Settings of the networks: how many, with how many units each, on at most so many words."""

    count: int = 4
    units: int = 24
    epochs: int = 30
    rate: float = 0.001
    batch: int = 256
    ridge: float = 3.0
    most_words: int = 60_000


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
        min_samples_leaf=how.least_words,
        l2_regularization=how.ridge,
        max_features=how.features,
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(limits=1):
        model.fit(rows.table, rows.target, rows.weight)
    return model


def perceptrons(rows: TrainingRows, how: NetSettings, seed: int) -> NetRater:
    """Fit networks to words drawn by their weights, and return their average as one network.

    The same ``seed`` gives the same networks.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise missing_package("training", "scikit-learn", "train") from error
    chances = rows.weight / rows.weight.sum()
    mean = np.average(rows.table, axis=0, weights=chances).astype(np.float32)
    scale = rows.table.std(axis=0) + np.float32(_LEAST_SCALE)
    table = standardised(rows.table, mean, scale)
    models = []
    for number in range(seed, seed + how.count):
        size = min(len(chances), how.most_words)
        drawn = np.random.default_rng(number).choice(len(chances), size, p=chances)
        model = MLPRegressor(
            hidden_layer_sizes=(how.units,),
            alpha=how.ridge,
            max_iter=how.epochs,
            learning_rate_init=how.rate,
            batch_size=min(how.batch, size),
            random_state=number,
        )
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # as many epochs as are asked for
            model.fit(table[drawn], rows.target[drawn])
        models.append(model)
    return NetRater(
        names=rows.names,
        mean=mean,
        scale=scale,
        weights=np.concatenate([model.coefs_[0] for model in models], axis=1).astype(np.float32),
        bias=np.concatenate([model.intercepts_[0] for model in models]).astype(np.float32),
        output=np.concatenate([model.coefs_[1][:, 0] for model in models]).astype(np.float32)
        / np.float32(how.count),
        base=np.array([np.mean([model.intercepts_[1] for model in models])], dtype=np.float32),
    )


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

"""Means of scores by language, with intervals from resampled items.

Items of one cluster (see ``schema.clusters``) are no independent observations: where there are any,
an interval is as wide as Student's t of the clusters asks, and a test flips the signs of whole
clusters.

A table of values has one row per item (at least one) and one column per metric; NaN says that the
item does not have the metric. All draws come from a fixed seed and the language's name, so the
same scores always give the same intervals, whatever else is scored with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.base.fields import FrozenModel
from spanlab.formats.wrongs import repeated_id
from spanlab.output.tables import MeanInterval
from spanlab.schema import Relations, clusters
from spanlab.scoring.intervals import cluster_variance, t_quantile, unseen_clusters, wilson
from spanlab.scoring.spans import METRICS, ItemScore, PerMetric, score_items
from spanlab.text.labels import ItemLabels

_BATCH = 4096  # items scored at a time, which bounds the memory


class _Counted(FrozenModel):
    n: int


class ScoreMeans(PerMetric[MeanInterval], _Counted):
    """Mean scores of ``n`` items; ``max_iou`` over those of them whose annotators are known."""


class LanguageMeans(ScoreMeans):
    """Mean scores of the items of one language."""

    lang: str


class ScoreReport(FrozenModel):
    """Scores per item (in the order given), per language (by name), and macro.

    ``macro`` is the mean of the languages' means: every language counts the same.
    """

    items: tuple[ItemScore, ...]
    languages: tuple[LanguageMeans, ...]
    macro: ScoreMeans


def mean_of(values: Sequence[float], clusters: Sequence[int] | None = None) -> MeanInterval:
    """Return the mean of any value per item, with its interval.

    Args:
        values: at least one.
        clusters: the cluster of each; None where all are independent.

    Raises:
        InputError: there is no value.
    """
    if not values:
        raise InputError("no value to take the mean of", expected="at least one item")
    table, codes = np.array(values, dtype=np.float64)[:, None], codes_of(clusters)
    ((low,), (high,)) = mean_intervals(table, bootstrap(table, "", codes), codes)
    return MeanInterval(mean=float(table.mean()), low=float(low), high=float(high))


def score(pairs: Iterable[tuple[ItemLabels, ItemLabels]]) -> ScoreReport:
    """Score pairs of gold labels and prediction; an item's language is that of its gold labels.

    The intervals come from resampling the items within each language; for the macro means all
    languages are resampled at once. Above 10,000 items of a language the means are drawn from
    the normal distribution that resampling converges to. The same input always gives the same
    intervals.

    Raises:
        InputError: there are no pairs, an id is repeated, or a pair does not fit
            (see ``score_item``).
    """
    rest, items, relations = iter(pairs), list[ItemScore](), list[Relations]()
    while batch := list(islice(rest, _BATCH)):
        items += score_items(batch)
        relations += [gold.relations for gold, _ in batch]
    if not items:
        raise InputError("there is nothing to score", expected="at least one pair of labels")
    _check_unique(items)
    items = [
        item if at == first else item.model_copy(update={"cluster": items[first].id})
        for at, (item, first) in enumerate(zip(items, clusters(relations), strict=True))
    ]
    observed: list[Table] = []
    samples: list[Table] = []
    ends: list[Table] = []
    languages: list[LanguageMeans] = []
    for lang, members in by_language(items).items():
        table, codes = values(members), codes_of([item.cluster or item.id for item in members])
        observed.append(means(table))
        samples.append(bootstrap(table, lang, codes))
        ends.append(mean_intervals(table, samples[-1], codes))
        estimates = _estimates(observed[-1], ends[-1])
        languages.append(LanguageMeans(lang=lang, n=len(members), **estimates))
    macro = _estimates(macro_mean(observed), macro_intervals(observed, ends, samples))
    means_of_all = ScoreMeans(n=len(items), **macro)
    return ScoreReport(items=tuple(items), languages=tuple(languages), macro=means_of_all)


def score_by(
    metric: Callable[[ItemLabels, ItemLabels], float],
    pairs: Iterable[tuple[ItemLabels, ItemLabels]],
) -> dict[str, MeanInterval]:
    """Return means of a metric of one's own by language, and "macro", with 95 % intervals.

    Args:
        metric: a number for the gold labels of an item and what was predicted.
        pairs: gold labels and prediction of each item, at least one.
    """
    groups: dict[str, list[float]] = {}
    for gold, predicted in pairs:
        groups.setdefault(gold.lang, []).append(float(metric(gold, predicted)))
    tables = {lang: np.array(groups[lang], np.float64)[:, None] for lang in sorted(groups)}
    observed = {lang: means(table) for lang, table in tables.items()}
    samples = {lang: bootstrap(table, lang) for lang, table in tables.items()}
    ends = {lang: mean_intervals(table, samples[lang]) for lang, table in tables.items()}
    every = [list(of.values()) for of in (observed, ends, samples)]
    observed["macro"], ends["macro"] = macro_mean(every[0]), macro_intervals(*every)
    return {
        lang: MeanInterval(mean=float(mean[0]), low=ends[lang][0, 0], high=ends[lang][1, 0])
        for lang, mean in observed.items()
    }


def by_language(items: Iterable[ItemScore]) -> dict[str, list[ItemScore]]:
    """Return the items of each language, languages by name."""
    groups: dict[str, list[ItemScore]] = {}
    for item in items:
        groups.setdefault(item.lang, []).append(item)
    return dict(sorted(groups.items()))


def values(items: Sequence[ItemScore]) -> Table:
    """Return the table items × ``METRICS`` with NaN where an item lacks a metric."""
    rows = [[getattr(item, metric) for metric in METRICS] for item in items]
    return np.array(rows, dtype=np.float64)


def macro_mean(languages: Sequence[Table]) -> Table:
    """Return the mean over languages, of each metric over the languages that have it."""
    stacked = np.stack(languages)
    axes = tuple(range(1, stacked.ndim - 1))
    has = ~np.all(np.isnan(stacked), axis=axes)  # languages × metrics
    columns = [
        np.mean(stacked[has[:, index], ..., index], axis=0)
        if has[:, index].any()
        else np.full(stacked.shape[1:-1], np.nan)
        for index in range(stacked.shape[-1])
    ]
    return np.stack(columns, axis=-1)


def _estimates(observed: Table, ends: Table) -> dict[str, Any]:
    defined = [at for at, mean in enumerate(observed) if not np.isnan(mean)]
    keys = list(METRICS)
    by_metric: dict[str, Any] = dict.fromkeys(keys)
    for at, low, high in zip(defined, *ends[:, defined].tolist(), strict=True):
        by_metric[keys[at]] = MeanInterval(mean=float(observed[at]), low=low, high=high)
    return by_metric


def _check_unique(items: Sequence[ItemScore]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise repeated_id(item.id, "every id once")
        seen.add(item.id)


RESAMPLES = 2000
CONFIDENCE = 0.95
_SEED = 20250
_MANY = 10_000  # items of a language above which means are drawn from their normal limit
_FEW = 250  # items whose samples are kept: 4 MB
_CELLS = 2_000_000  # numbers drawn at a time, which bounds the memory
Table = NDArray[np.float64]


def means(values: Table) -> Table:
    """Return each column's mean over the items that have it; NaN where none has."""
    return _divide(np.nansum(values, axis=0), np.sum(~np.isnan(values), axis=0))


Codes = NDArray[np.int_] | None


def codes_of(clusters: Sequence[Hashable] | None) -> Codes:
    """Return the number of each item's cluster; None where no two items are in one."""
    if clusters is None or len(set(clusters)) == len(clusters):
        return None
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    return np.array([numbers[cluster] for cluster in clusters])


def bootstrap(values: Table, lang: str, codes: Codes = None) -> Table:
    """Return the column means of ``RESAMPLES`` samples of the items, drawn with replacement.

    Efron & Tibshirani 1993, An Introduction to the Bootstrap, ch. 13 (percentile method). The
    result is samples × metrics, with NaN where a sample has no item with the metric. With
    ``codes`` of clusters the samples are drawn apart until their percentiles are those of
    Student's t with the clusters' variance: few clusters, resampled, vary too little.
    """
    samples = _resampled(values, lang)
    if codes is None:
        return samples
    centre = means(values)
    n = np.sum(~np.isnan(values), axis=0)
    parts = _divide(values - centre, np.broadcast_to(n, values.shape))
    together, number = cluster_variance(parts, codes)
    alone = np.nansum(np.square(parts), axis=0)
    normal = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    t = np.array([t_quantile(int(g) - 1) / normal for g in number])
    apart = t * np.sqrt(_divide(np.maximum(together, alone), alone))
    drawn_apart: Table = centre + (samples - centre) * np.nan_to_num(apart, nan=1.0)
    return drawn_apart


def _resampled(values: Table, lang: str) -> Table:
    items = len(values)
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    if items > _MANY:
        generator = seeded(lang, "bootstrap")
        centre = means(values)
        squares = np.where(present, (values - centre) ** 2, 0.0)
        return _normal(generator, centre, np.sum(squares, axis=0), present.sum(axis=0))
    # Where every item has every metric, as a rule, the counts need no product.
    counts = None if present.all() else present.astype(np.float64)
    return np.concatenate(
        [
            drawn @ filled / items if counts is None else _divide(drawn @ filled, drawn @ counts)
            for drawn in weights(items, lang)
        ]
    )


def weights(items: int, name: str) -> Iterator[Table]:
    """Yield ``RESAMPLES`` samples of items, a few at a time: how often each item was drawn.

    Args:
        items: how many there are, at least one.
        name: what is resampled; the same name gives the same draws.
    """
    if items <= _FEW:
        return iter((_drawn_once(items, name),))
    return _drawn(seeded(name, "bootstrap"), items)


@lru_cache(maxsize=16)
def _drawn_once(items: int, name: str) -> Table:
    """Return all samples of a few items: annotators of the same items share them."""
    (drawn,) = _drawn(seeded(name, "bootstrap"), items)
    drawn.flags.writeable = False
    return drawn


def _drawn(generator: np.random.Generator, items: int) -> Iterator[Table]:
    for rows in _chunks(items):
        drawn = generator.integers(items, size=(rows, items)) + np.arange(rows)[:, None] * items
        counts = np.bincount(drawn.ravel(), minlength=rows * items).reshape(rows, items)
        yield counts.astype(np.float64)


def flipped(differences: Table, lang: str, codes: Codes = None) -> Table:
    """Return the column means of ``RESAMPLES`` copies with random signs before the rows.

    If two systems are equally good, each item's difference might as well have the other sign:
    the paired permutation test (Good 2005, Permutation, Parametric and Bootstrap Tests, ch. 3).
    All items of a cluster have one sign. The result is samples × metrics, with NaN for a metric
    that no item has.
    """
    filled, present = _cluster_sums(differences, codes)
    items, n = len(filled), present.sum(axis=0)
    generator = seeded(lang, "flipped")
    if items > _MANY:
        centre = _divide(np.zeros(filled.shape[1]), n)
        return _normal(generator, centre, np.sum(filled**2, axis=0), n)
    parts = [_divide((2 * kept - 1) @ filled, n) for kept in _halves(generator, items)]
    return np.concatenate(parts)


def flip_intervals(differences: Table, lang: str, codes: Codes = None) -> Table:
    """Return the ends of the mean differences that ``flipped``'s test does not reject, by column.

    A difference above the observed one is as likely as the observed one, by the same random signs,
    where the mean of the rows with one sign is above it (Hartigan 1969, Using Subsample Values as
    Typical Values). So p is below .05 where the interval is on one side of 0, and only there. Five
    items or fewer rule nothing out: the interval is all that values can be, [-1, 1] or wider.
    """
    filled, present = _cluster_sums(differences, codes)
    if len(filled) > _MANY:
        return _defined_intervals(bootstrap(differences, lang, codes))
    total, n = filled.sum(axis=0), present.sum(axis=0)
    lows, highs = list[Table](), list[Table]()
    for kept in _halves(seeded(lang, "flipped"), len(filled)):
        sums, sizes = kept @ filled, kept @ present
        means_of = _divide(sums, sizes), _divide(total - sums, n - sizes)  # NaN of no rows
        lows.append(np.nan_to_num(np.minimum(*means_of), nan=-np.inf))
        highs.append(np.nan_to_num(np.maximum(*means_of), nan=np.inf))
    at = math.ceil((1 - CONFIDENCE) * (1 + RESAMPLES)) - 2  # the first that makes p .05
    low = np.sort(np.concatenate(lows), axis=0)[at]
    high = -np.sort(-np.concatenate(highs), axis=0)[at]
    most = np.maximum(np.nanmax(np.abs(np.nan_to_num(differences)), axis=0), 1)
    ends: Table = np.clip(np.stack([low, high]).round(12), -most, most)  # as in ``p_value``
    ends[:, n == 0] = np.nan
    return ends


def _cluster_sums(values: Table, codes: Codes) -> tuple[Table, Table]:
    """Return the sums of rows, and how many there are: by cluster, or each row by itself."""
    rows = np.nan_to_num(values), (~np.isnan(values)).astype(np.float64)
    if codes is None:
        return rows
    sums = np.zeros((2, codes.max() + 1, values.shape[1]))
    for into, of in zip(sums, rows, strict=True):
        np.add.at(into, codes, of)
    return sums[0], sums[1]


def _halves(generator: np.random.Generator, items: int) -> Iterator[Table]:
    """Yield ``RESAMPLES`` rows, a few at a time: 1 for the items of a random half, else 0."""
    for rows in _chunks(items):
        yield generator.integers(2, size=(rows, items)).astype(np.float64)


def swaps(items: int, name: str) -> Iterator[Table]:
    """Yield ``RESAMPLES`` rows, a few at a time: 1 for the items whose two results change places.

    Where a figure is no mean over items, this takes the place of ``flipped``.

    Args:
        items: how many there are, at least one.
        name: what is resampled; the same name gives the same draws.
    """
    return _halves(seeded(name, "swapped"), items)


def interval(samples: Table) -> tuple[float, float]:
    """Return the percentile interval of one metric's samples."""
    low, high = intervals(samples)
    return float(low), float(high)


def intervals(samples: Table) -> Table:
    """Return the low and the high ends of the percentile intervals, one per column of samples."""
    tail = (1 - CONFIDENCE) / 2
    quantile = np.nanquantile if np.isnan(samples).any() else np.quantile  # this is much faster
    ends: Table = quantile(samples, [tail, 1 - tail], axis=0)
    return ends


def mean_intervals(values: Table, samples: Table, codes: Codes = None) -> Table:
    """Return the ends of the intervals of means, one per column; none is a point.

    Resampling a few items that agree says that all items do: ten clean answers would give a rate of
    0 for certain. So a column of shares (0 and 1 alone) has Wilson's interval, and one of other
    values between 0 and 1 reaches as far as if one item more had been drawn, with 0 or with 1.

    Args:
        values: items × metrics, with NaN where an item lacks a metric.
        samples: means of resampled items, samples × metrics.
        codes: the cluster of each item, which then stands for the item; None without any.
    """
    ends = _defined_intervals(samples)
    observed, present = means(values), ~np.isnan(values)
    n = present.sum(axis=0)
    filled = np.where(present, values, 0.0)
    bounded = np.flatnonzero(np.all((filled >= 0) & (filled <= 1), axis=0) & (n > 0))
    mean, count, column = observed[bounded], n[bounded], filled[:, bounded]
    is_share = np.all((column == 0) | (column == 1), axis=0)
    shares = np.stack(wilson(mean, count))
    if codes is not None:
        known = np.where(present, values, np.nan)[:, bounded]
        effective = [_effective(each, codes) for each in known.T]
        count = np.array([number for _, number in effective])
        ends_of = zip(mean, effective, strict=True)
        shares = np.stack([wilson(np.asarray(m), np.asarray(n), g - 1) for m, (n, g) in ends_of], 1)
    reached = np.stack([mean * count / (count + 1), (mean * count + 1) / (count + 1)])
    low, high = np.fmin(ends[0, bounded], reached[0]), np.fmax(ends[1, bounded], reached[1])
    low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    ends[:, bounded] = np.where(is_share, shares, np.stack([low, high]))
    return ends


def difference_intervals(differences: Table, ends: Table, codes: Codes = None) -> Table:
    """Return the ends of the intervals of mean differences, one per column; none is a point.

    Two systems that do the same on a few items may still differ. Differences of shares (-1, 0 and 1
    alone) reach at least as far as the interval of Bonett & Price (Statistics in Medicine 31, 2012)
    with Student's t: one item more on which the first is better, and one on which the second is.
    Others between -1 and 1 reach as far as if one such item more had been drawn.

    Args:
        differences: items × metrics, with NaN where an item lacks a metric.
        ends: of the intervals of ``flip_intervals``.
        codes: the cluster of each item, which then stands for the item; None without any.
    """
    ends = ends.copy()
    for at, column in enumerate(differences.T):
        known = ~np.isnan(column)
        d, n = column[known], int(known.sum())
        if not n or np.abs(d).max() > 1:
            continue
        if codes is not None:
            sums = np.bincount(codes[known], d, len(codes))
            sizes = np.bincount(codes[known], minlength=len(codes))
            d, n = (sums / np.maximum(sizes, 1))[sizes > 0], int(np.count_nonzero(sizes))
        reach = np.array([d.sum() - 1, d.sum() + 1]) / (n + 1)
        if np.isin(column[known], (-1, 0, 1)).all():
            more = np.append(d, [1, -1])
            half = t_quantile(n + 1) * more.std(ddof=1) / np.sqrt(n + 2)
            reach = more.mean() + half * np.array([-1, 1])
        ends[:, at] = max(min(ends[0, at], reach[0]), -1), min(max(ends[1, at], reach[1]), 1)
    return ends


def _effective(shares: Table, codes: NDArray[np.int_]) -> tuple[np.float64, int]:
    """Return how many independent items say as much of a rate, and the number of clusters."""
    known = ~np.isnan(shares)
    values, codes, n = shares[known], codes[known], int(known.sum())
    rate = values.mean()
    together, number = cluster_variance((values - rate) / n, codes)
    alone = rate * (1 - rate) / n
    if not alone:
        return np.float64(number), int(number)
    variance = max(float(together), alone) + unseen_clusters(np.full(n, 1 / n), codes)
    return np.float64(n * alone / variance), int(number)


def _defined_intervals(samples: Table) -> Table:
    """Return percentile intervals by column; NaN for a metric that no item has."""
    ends: Table = np.full((2, samples.shape[1]), np.nan)
    defined = ~np.all(np.isnan(samples), axis=0)
    if defined.any():
        ends[:, defined] = intervals(samples[:, defined])
    return ends


def macro_intervals(
    observed: Sequence[Table], ends: Sequence[Table], samples: Sequence[Table]
) -> Table:
    """Return the ends of intervals of macro means, with what languages reach beyond their samples.

    Languages are independent: what their intervals reach below and above adds up by squares, and
    never beyond the mean of their ends, which are values that scores can have. Of one language
    alone it is that of the language.
    """
    if len(ends) == 1:
        return ends[0]
    middle, drawn = macro_mean(observed), _defined_intervals(macro_mean(samples))
    beyond = [
        np.square(end - mean) - np.square(_defined_intervals(sample) - mean)
        for end, mean, sample in zip(ends, observed, samples, strict=True)
    ]
    n = np.maximum(np.sum([~np.isnan(mean) for mean in observed], axis=0), 1)
    more = np.nansum(np.fmax(beyond, 0), axis=0) / n**2
    half = np.sqrt(np.square(drawn - middle) + more)
    low, high = np.where(more > 0, np.stack([middle - half[0], middle + half[1]]), drawn)
    least, most = macro_mean(ends)
    return np.stack([np.fmax(low, least), np.fmin(high, most)])


def p_value(observed: float, samples: Table) -> float:
    """Return how often a sample is at least as far from 0 as ``observed``, itself included."""
    as_far = np.abs(samples) >= abs(observed) - 1e-12  # equal sums may differ in their last bit
    return float((1 + np.count_nonzero(as_far)) / (1 + len(samples)))


def seeded(lang: str, purpose: str) -> np.random.Generator:
    """Return the generator of a purpose and a name, always the same."""
    return np.random.default_rng([_SEED, *f"{purpose} {lang}".encode()])


def _normal(
    generator: np.random.Generator, centre: Table, squares: Table, counts: NDArray[np.int_]
) -> Table:
    """Draw the means that resampling would give, from their normal limit, column by column."""
    spread = np.sqrt(_divide(squares, counts)) / np.sqrt(np.maximum(counts, 1))
    samples: Table = centre + spread * generator.standard_normal((RESAMPLES, len(centre)))
    return samples


def _chunks(items: int) -> list[int]:
    rows = max(1, min(RESAMPLES, _CELLS // items))
    whole, rest = divmod(RESAMPLES, rows)
    return [rows] * whole + ([rest] if rest else [])


def _divide(sums: Table, counts: NDArray[np.float64] | NDArray[np.int_]) -> Table:
    quotients: Table = np.full(np.broadcast_shapes(sums.shape, counts.shape), np.nan)
    np.divide(sums, counts, out=quotients, where=counts > 0)
    return quotients

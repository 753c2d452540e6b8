"""Scores of many items: means per language and over languages, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from spanlab.errors import InputError
from spanlab.labels import Labels
from spanlab.results import MeanInterval
from spanlab.schema import Frozen
from spanlab.scorers._item import METRICS, ItemScore, score_items
from spanlab.scorers._resample import Table, bootstrap, interval, intervals, means

_BATCH = 4096  # items scored at a time, which bounds the memory


class Means(Frozen):
    """Mean scores of ``n`` items; ``max_iou`` over those of them whose annotators are known."""

    n: int
    iou: MeanInterval
    corr: MeanInterval
    max_iou: MeanInterval | None
    precision: MeanInterval
    recall: MeanInterval
    f1: MeanInterval
    span_f1: MeanInterval


class LanguageMeans(Means):
    """Mean scores of the items of one language."""

    lang: str


class Report(Frozen):
    """Scores per item (in the order given), per language (by name), and macro.

    ``macro`` is the mean of the languages' means: every language counts the same.
    """

    items: tuple[ItemScore, ...]
    languages: tuple[LanguageMeans, ...]
    macro: Means


def mean_of(values: Sequence[float]) -> MeanInterval:
    """Return the mean of any value per item, with its interval.

    Raises:
        InputError: there is no value.
    """
    if not values:
        raise InputError("no value to take the mean of", expected="at least one item")
    table = np.array(values, dtype=np.float64)[:, None]
    low, high = interval(bootstrap(table, "")[:, 0])
    return MeanInterval(mean=float(table.mean()), low=low, high=high)


def score(pairs: Iterable[tuple[Labels, Labels]]) -> Report:
    """Score pairs of gold labels and prediction; an item's language is that of its gold labels.

    The intervals come from resampling the items within each language; for the macro means all
    languages are resampled at once. Above 10,000 items of a language the means are drawn from
    the normal distribution that resampling converges to. The same input always gives the same
    intervals.

    Raises:
        InputError: there are no pairs, an id is repeated, or a pair does not fit
            (see ``score_item``).
    """
    rest, items = iter(pairs), list[ItemScore]()
    while batch := list(islice(rest, _BATCH)):
        items += score_items(batch)
    if not items:
        raise InputError("there is nothing to score", expected="at least one pair of labels")
    _check_unique(items)
    observed: list[Table] = []
    samples: list[Table] = []
    languages: list[LanguageMeans] = []
    for lang, members in by_language(items).items():
        table = values(members)
        observed.append(means(table))
        samples.append(bootstrap(table, lang))
        estimates = _estimates(observed[-1], samples[-1])
        languages.append(LanguageMeans(lang=lang, n=len(members), **estimates))
    macro = _estimates(macro_mean(observed), macro_mean(samples))
    means_of_all = Means(n=len(items), **macro)
    return Report(items=tuple(items), languages=tuple(languages), macro=means_of_all)


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


def _estimates(observed: Table, samples: Table) -> dict[str, MeanInterval | None]:
    known = [at for at, mean in enumerate(observed) if not np.isnan(mean)]
    found: dict[str, MeanInterval | None] = dict.fromkeys(METRICS)
    for at, low, high in zip(known, *intervals(samples[:, known]).tolist(), strict=True):
        found[METRICS[at]] = MeanInterval(mean=float(observed[at]), low=low, high=high)
    return found


def _check_unique(items: Sequence[ItemScore]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise InputError(
                f"item {item.id!r} occurs twice", found=item.id, expected="every id once"
            )
        seen.add(item.id)

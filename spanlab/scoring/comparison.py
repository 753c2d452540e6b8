"""Paired comparison of two systems on the same items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spanlab.base.errors import InputError
from spanlab.base.fields import FrozenModel
from spanlab.scoring.report import (
    ScoreReport,
    Table,
    bootstrap,
    by_language,
    codes_of,
    difference_intervals,
    flip_intervals,
    flipped,
    macro_intervals,
    macro_mean,
    means,
    p_value,
    values,
)
from spanlab.scoring.spans import METRICS, ItemScore, PerMetric


class MeanDifference(FrozenModel):
    """Mean of the first system minus mean of the second.

    Above 0 the first is better. ``low`` and ``high`` are the 95 % interval, which is no point (see
    ``difference_intervals``): the differences that the test of ``p`` does not reject.
    ``p`` in (0, 1] is the chance of a difference at least this far from 0 if the two were
    equally good (paired permutation test, two-sided, to about 0.0005); equal scores on all items
    give 1.
    """

    difference: float
    low: float
    high: float
    p: float


class _Counted(FrozenModel):
    n: int


class ScoreDifferences(PerMetric[MeanDifference], _Counted):
    """Differences over ``n`` common items; ``max_iou`` over those where both have it."""


class LanguageDifferences(ScoreDifferences):
    """Differences over the common items of one language."""

    lang: str


class ReportComparison(FrozenModel):
    """Two reports compared; ``only_a`` and ``only_b`` are ids that took no part.

    The p of each language are corrected by Holm for the number of languages.
    """

    languages: tuple[LanguageDifferences, ...]
    macro: ScoreDifferences
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def compare(a: ScoreReport, b: ScoreReport) -> ReportComparison:
    """Compare two systems on the items that both have been scored on, against the same gold.

    Both tests are paired: they look at each item's difference. Items are resampled within their
    language, and for the macro difference in all languages at once. The same reports always give
    the same figures.

    Raises:
        InputError: the reports have no id in common, or an id under two languages.
    """
    theirs = {item.id: item for item in b.items}
    common = [item for item in a.items if item.id in theirs]
    if not common:
        raise InputError(
            "the two reports have no item in common",
            found=[item.id for report in (a, b) for item in report.items[:1]],
            expected="scores of two systems on the same items",
        )
    observed: list[Table] = []
    resampled: list[Table] = []
    ends: list[Table] = []
    signed: list[Table] = []
    languages: list[LanguageDifferences] = []
    for lang, members in by_language(common).items():
        table = values(members) - values([_same(item, theirs[item.id]) for item in members])
        codes = codes_of([item.cluster or item.id for item in members])
        observed.append(means(table))
        resampled.append(bootstrap(table, lang, codes))
        ends.append(difference_intervals(table, flip_intervals(table, lang, codes), codes))
        signed.append(flipped(table, lang, codes))
        differences = _differences(observed[-1], ends[-1], signed[-1])
        languages.append(LanguageDifferences(lang=lang, n=len(members), **differences))
    languages = _corrected(languages)
    whole = macro_intervals(observed, ends, resampled)
    macro = _differences(macro_mean(observed), whole, macro_mean(signed))
    return ReportComparison(
        languages=tuple(languages),
        macro=ScoreDifferences(n=len(common), **macro),
        only_a=_missing(a.items, theirs),
        only_b=_missing(b.items, {item.id for item in common}),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, in their order.

    Holm, "A simple sequentially rejective multiple test procedure" (1979): the chance that any of
    them is below .05 where no two systems differ is at most .05. Of 66 tests of twelve equal
    systems some are below it nearly always.
    """
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(ranked):
        highest = max(highest, min(1.0, p_values[at] * (len(ranked) - rank)))
        corrected[at] = highest
    return corrected


def _corrected(languages: list[LanguageDifferences]) -> list[LanguageDifferences]:
    changes: list[dict[str, MeanDifference]] = [{} for _ in languages]
    for metric in METRICS:
        found = ((at, getattr(language, metric)) for at, language in enumerate(languages))
        known = [(at, difference) for at, difference in found if difference is not None]
        for (at, d), p in zip(known, holm([d.p for _, d in known]), strict=True):
            changes[at][metric] = d.model_copy(update={"p": p})
    return [
        language.model_copy(update=change)
        for language, change in zip(languages, changes, strict=True)
    ]


def paired(
    a: Sequence[float], b: Sequence[float], clusters: Sequence[int] | None = None
) -> MeanDifference:
    """Compare two systems by any value per item, given for the same items in the same order.

    Args:
        a: values of the first.
        b: values of the second.
        clusters: the cluster of each item; None where all are independent.

    Raises:
        InputError: the lists are empty or differ in length.
    """
    if not a or len(a) != len(b):
        raise InputError(f"{len(a)} and {len(b)} values", expected="as many of both, at least one")
    table = (np.array(a, dtype=np.float64) - np.array(b, dtype=np.float64))[:, None]
    codes = codes_of(clusters)
    ends = difference_intervals(table, flip_intervals(table, "", codes), codes)
    return _difference(table.mean(), ends[:, 0], flipped(table, "", codes)[:, 0])


def _differences(observed: Table, ends: Table, signed: Table) -> dict[str, Any]:
    return {
        metric: None
        if np.isnan(observed[at])
        else _difference(observed[at], ends[:, at], signed[:, at])
        for at, metric in enumerate(METRICS)
    }


def _difference(observed: np.float64, ends: Table, signed: Table) -> MeanDifference:
    low, high = ends.tolist()
    difference = float(observed)
    return MeanDifference(difference=difference, low=low, high=high, p=p_value(difference, signed))


def _same(mine: ItemScore, other: ItemScore) -> ItemScore:
    if mine.lang != other.lang:
        raise InputError(
            f"item {mine.id!r} is {mine.lang!r} in one report and {other.lang!r} in the other",
            expected="reports against the same gold labels",
        )
    return other


def _missing(items: Iterable[ItemScore], ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(item.id for item in items if item.id not in ids)

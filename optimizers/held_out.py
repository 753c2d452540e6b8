"""What a search is worth on items that it has not seen: the untuned and the tuned prompt compared.

Spans and answers are compared by the mean of the metric over items, verdicts on claims and types of
errors in steps by their macro F1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from spanlab.results import MeanInterval
from spanlab.schema import FrozenModel, HeldOut, HeldOutScore, Unit
from spanlab.scorers import JudgedClaim, MeanDifference, compare_macro_f1, mean_of, paired


class FoldScores(FrozenModel):
    """The metric of each item that a fold held out, under the untuned and the tuned prompt.

    Of held-out claims or steps, ``ids`` and ``languages`` are those of their items, the metric is 1
    for a right verdict or type and 0 for another, which are ``judged_before`` and ``judged_after``.
    """

    ids: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    judged_before: tuple[JudgedClaim, ...] = ()
    judged_after: tuple[JudgedClaim, ...] = ()


def held_out(folds: Sequence[FoldScores], unit: Unit) -> HeldOut:
    """Compare the untuned and the tuned prompt on what the folds held out."""
    if any(fold.judged_before for fold in folds):
        return _verdicts(folds, unit)
    rows = sorted(
        row
        for fold in folds
        for row in zip(fold.ids, fold.languages, fold.before, fold.after, strict=True)
    )
    was, now = [row[2] for row in rows], [row[3] for row in rows]
    difference = paired(now, was)
    by_language: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _, lang, before, after in rows:
        by_language[lang].append((before, after))
    return HeldOut(
        items=len(rows),
        folds=len(folds),
        baseline=_score(mean_of(was)),
        tuned=_score(mean_of(now)),
        difference=_difference(difference),
        p=difference.p,
        languages={
            lang: (fmean(before for before, _ in pairs), fmean(after for _, after in pairs))
            for lang, pairs in sorted(by_language.items())
        },
        unit=unit,
    )


def _verdicts(folds: Sequence[FoldScores], unit: Unit) -> HeldOut:
    by_language: dict[str, list[tuple[JudgedClaim, JudgedClaim]]] = defaultdict(list)
    for fold in folds:
        for row in zip(fold.languages, fold.judged_before, fold.judged_after, strict=True):
            by_language[row[0]].append((row[1], row[2]))
    pairs = [pair for _, found in sorted(by_language.items()) for pair in found]
    macro = compare_macro_f1([now for _, now in pairs], [was for was, _ in pairs])
    languages = {
        lang: compare_macro_f1([now for _, now in found], [was for was, _ in found])
        for lang, found in sorted(by_language.items())
    }
    return HeldOut(
        items=len(pairs),
        folds=len(folds),
        baseline=_score(macro.b),
        tuned=_score(macro.a),
        difference=_difference(macro.difference),
        p=macro.difference.p,
        languages={lang: (each.b.mean, each.a.mean) for lang, each in languages.items()},
        unit=unit,
    )


def _score(found: MeanInterval) -> HeldOutScore:
    return HeldOutScore(mean=found.mean, low=found.low, high=found.high)


def _difference(found: MeanDifference) -> HeldOutScore:
    return HeldOutScore(mean=found.difference, low=found.low, high=found.high)

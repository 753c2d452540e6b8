"""Splits of labelled items into training and held-out ones, and the scores on those held out.

No question or answer is on two sides of a split; the untuned and the tuned prompt are compared.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from optimizers.examples import LabelledItem
from spanlab.base.errors import UsageError
from spanlab.base.fields import FrozenModel
from spanlab.output.tables import MeanInterval
from spanlab.schema import HeldOut, HeldOutScore, Unit, related
from spanlab.scoring.claims import JudgedClaim, compare_macro_f1
from spanlab.scoring.comparison import MeanDifference, paired
from spanlab.scoring.report import mean_of

Transfer = Literal["pooled", "each", "others"]
FEWEST: Final = 4  # labelled items: two to learn from and to choose by, as many held out


@dataclass(frozen=True)
class DataFold:
    """Training items and held-out items; no question is in both."""

    training: tuple[LabelledItem, ...]
    held_out: tuple[LabelledItem, ...]


def split_in_folds(
    examples: Sequence[LabelledItem], count: int, seed: int, unit: Unit = "items"
) -> tuple[DataFold, ...]:
    """Split for cross-validation: each item is held out exactly once.

    Items of one cluster (see ``schema.clusters``) stay together, so that nothing held out was seen;
    every language is spread evenly. The same examples in any order give the same folds.

    Args:
        examples: labelled items.
        count: number of folds, 2 or more.
        seed: which of the many possible splits.
        unit: what the examples are, for a message.

    Returns:
        ``count`` folds.

    Raises:
        UsageError: there are too few examples, or too few that differ in question and answer.
    """
    groups = _groups(examples)
    if len(examples) < FEWEST or len(groups) < count:
        raise UsageError(
            f"{len(examples)} labelled {unit} with {len(groups)} different questions are too few "
            f"for {count} folds: at least {max(FEWEST, count)} are needed; review more items, "
            "or pool languages"
        )
    folds_of_items: list[list[LabelledItem]] = [[] for _ in range(count)]
    for index, group in enumerate(_spread(groups, seed)):
        folds_of_items[index % count].extend(group)
    return tuple(
        DataFold(
            training=tuple(
                example for other in folds_of_items if other is not part for example in other
            ),
            held_out=tuple(part),
        )
        for part in folds_of_items
    )


def split_in_halves(
    examples: Sequence[LabelledItem], seed: int
) -> tuple[tuple[LabelledItem, ...], tuple[LabelledItem, ...]]:
    """Split into examples to learn from and examples to choose by; no question is in both.

    Raises:
        UsageError: all have the same question or answer.
    """
    groups = _spread(_groups(examples), seed)
    if len(groups) < 2:
        raise UsageError(
            f"all {len(examples)} labelled examples have one question or answer: at least two are "
            "needed, to learn from one and to choose by the other; review more items"
        )
    return (
        tuple(example for group in groups[::2] for example in group),
        tuple(example for group in groups[1::2] for example in group),
    )


def split_by_language(
    examples: Sequence[LabelledItem], lang: str, how: Transfer
) -> tuple[tuple[LabelledItem, ...], tuple[LabelledItem, ...]]:
    """Return the items that a prompt for ``lang`` may learn from, and those to measure it on.

    Args:
        examples: labelled items of any languages.
        lang: the language that the prompt is for.
        how: "each" learns from its own items, "others" from those of all other languages (so a
            language without labels gets a prompt too), "pooled" from all.

    Returns:
        The items to learn from, and those of ``lang``, which may be none.

    Raises:
        UsageError: nothing is left to learn from.
    """
    in_language = tuple(example for example in examples if example.item.lang == lang)
    elsewhere = tuple(example for example in examples if example.item.lang != lang)
    training = {"each": in_language, "others": elsewhere, "pooled": tuple(examples)}[how]
    if not training:
        raise UsageError(f"there is no labelled item to learn from for {lang!r} ({how})")
    return training, in_language


def clusters_of(examples: Sequence[LabelledItem]) -> dict[str, int]:
    """Return the cluster of each item by its id, see ``schema.clusters``."""
    items = {example.item.id: example.item for example in examples}
    return dict(zip(items, related(items.values()), strict=True))


def _groups(examples: Sequence[LabelledItem]) -> list[list[LabelledItem]]:
    """Put items of one cluster together, in an order of their own ids."""
    ordered = sorted(examples, key=lambda labelled: labelled.item.id)
    cluster_of = clusters_of(ordered)
    groups = defaultdict(list)
    for example in ordered:
        groups[cluster_of[example.item.id]].append(example)
    return list(groups.values())


def _spread(groups: list[list[LabelledItem]], seed: int) -> list[list[LabelledItem]]:
    """Put the groups in random order, the languages one after the other."""
    dice = random.Random(seed)
    by_id = sorted(groups, key=lambda group: group[0].item.id)
    dice.shuffle(by_id)
    return sorted(by_id, key=lambda group: group[0].item.lang)


class FoldScores(FrozenModel):
    """The metric of each item that a fold held out, under the untuned and the tuned prompt.

    Of held-out claims or steps, ``ids`` and ``languages`` are those of their items, and the metric
    is 1 for a right verdict or type and 0 for a wrong one; ``judged_before`` and ``judged_after``
    are these verdicts or types with the gold ones.
    """

    ids: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    judged_before: tuple[JudgedClaim, ...] = ()
    judged_after: tuple[JudgedClaim, ...] = ()


def compare_folds(
    folds: Sequence[FoldScores], unit: Unit, cluster_of: Mapping[str, int]
) -> HeldOut:
    """Compare the untuned and the tuned prompt on the held-out items of all folds.

    Args:
        folds: the scores of each fold.
        unit: what was scored.
        cluster_of: the cluster of each item, by id.

    Returns:
        Both means with intervals, their difference with its p value, and means by language.
    """
    if any(fold.judged_before for fold in folds):
        return _compare_verdicts(folds, unit)
    rows = sorted(
        row
        for fold in folds
        for row in zip(fold.ids, fold.languages, fold.before, fold.after, strict=True)
    )
    untuned, tuned = [row[2] for row in rows], [row[3] for row in rows]
    codes = [cluster_of[row[0]] for row in rows]
    difference = paired(tuned, untuned, codes)
    by_language: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _, lang, before, after in rows:
        by_language[lang].append((before, after))
    return HeldOut(
        items=len(rows),
        folds=len(folds),
        baseline=_score_of(mean_of(untuned, codes)),
        tuned=_score_of(mean_of(tuned, codes)),
        difference=_difference_of(difference),
        p=difference.p,
        languages={
            lang: (fmean(before for before, _ in pairs), fmean(after for _, after in pairs))
            for lang, pairs in sorted(by_language.items())
        },
        unit=unit,
    )


def _compare_verdicts(folds: Sequence[FoldScores], unit: Unit) -> HeldOut:
    by_language: dict[str, list[tuple[JudgedClaim, JudgedClaim]]] = defaultdict(list)
    for fold in folds:
        for row in zip(fold.languages, fold.judged_before, fold.judged_after, strict=True):
            by_language[row[0]].append((row[1], row[2]))
    pairs = [pair for _, scored in sorted(by_language.items()) for pair in scored]
    macro = compare_macro_f1([after for _, after in pairs], [before for before, _ in pairs])
    languages = {
        lang: compare_macro_f1([after for _, after in scored], [before for before, _ in scored])
        for lang, scored in sorted(by_language.items())
    }
    return HeldOut(
        items=len(pairs),
        folds=len(folds),
        baseline=_score_of(macro.b),
        tuned=_score_of(macro.a),
        difference=_difference_of(macro.difference),
        p=macro.difference.p,
        languages={
            lang: (language.b.mean, language.a.mean) for lang, language in languages.items()
        },
        unit=unit,
        macro_f1=True,
    )


def _score_of(interval: MeanInterval) -> HeldOutScore:
    return HeldOutScore(mean=interval.mean, low=interval.low, high=interval.high)


def _difference_of(difference: MeanDifference) -> HeldOutScore:
    return HeldOutScore(mean=difference.difference, low=difference.low, high=difference.high)

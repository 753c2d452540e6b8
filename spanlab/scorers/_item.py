"""The scores of one item, and the two trivial predictions that a real one has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from spanlab.errors import InputError
from spanlab.labels import Extent, Labels, Soft
from spanlab.schema import Frozen
from spanlab.scorers._spearman import spearman
from spanlab.scorers._track import Floats, Ints, Track

METRICS: Final = ("iou", "corr", "max_iou", "precision", "recall", "f1", "span_f1")


class ItemScore(Frozen):
    """The scores of a prediction on one item; ``score_item`` says what the figures mean."""

    id: str
    lang: str
    iou: float
    corr: float
    max_iou: float | None
    precision: float
    recall: float
    f1: float
    span_f1: float


def score_item(gold: Labels, pred: Labels) -> ItemScore:
    """Score the prediction for one item.

    - ``iou``: intersection over union of the hard labels' characters. 1 is the same characters,
      0 none in common; both empty is 1, one empty is 0.
    - ``corr``: Spearman correlation of the soft labels over all characters. 1 is the same order,
      0 no relation (also: exactly one side is constant), below 0 the reverse order; both constant
      is 1, an answer without characters too.
    - ``max_iou``: the best IoU with any single annotator's characters, so 1 if the prediction
      equals one of them; None where single annotators are not known.
    - ``precision``, ``recall``, ``f1`` of the hard labels' characters. 1 is all right, 0 nothing
      right; both sides empty is 1 for all three, one side empty is 0 for all three.
    - ``span_f1``: of whole spans with both edges exactly right, touching spans counted as one.
      1 is all and only the gold spans, 0 none of them; both empty is 1, one empty is 0.

    Raises:
        InputError: the ids or lengths differ, neither side knows the answer's length, or labels
            reach past the answer; names the id.
    """
    return score_items([(gold, pred)])[0]


def score_items(pairs: Sequence[tuple[Labels, Labels]]) -> list[ItemScore]:
    """Score many items at once, which is much faster than one by one; see ``score_item``."""
    if not pairs:
        return []
    golds, preds = [gold for gold, _ in pairs], [pred for _, pred in pairs]
    lengths = np.array([_check_fit(gold, pred) for gold, pred in pairs], dtype=np.int64)
    bases = np.cumsum(lengths) - lengths
    wanted = Track.of([gold.hard for gold in golds], bases)
    found = Track.of([pred.hard for pred in preds], bases)
    common = wanted.common(found)
    n_wanted, n_found = wanted.sums(wanted.size), found.sums(found.size)
    either = n_wanted + n_found
    corr = spearman(
        Track.of([gold.soft for gold in golds], bases),
        Track.of([pred.soft for pred in preds], bases),
        lengths,
    )
    columns: dict[str, list[float | None]] = {
        "iou": _share(common, either - common, either).tolist(),
        "corr": corr.tolist(),
        "max_iou": _max_iou(golds, found, bases),
        "precision": _share(common, n_found, either).tolist(),
        "recall": _share(common, n_wanted, either).tolist(),
        "f1": _share(2 * common, either, either).tolist(),
        "span_f1": _span_f1(wanted, found).tolist(),
    }
    return [
        ItemScore(id=gold.id, lang=gold.lang, **dict(zip(columns, row, strict=True)))
        for gold, *row in zip(golds, *columns.values(), strict=True)
    ]


def mark_all(gold: Labels) -> Labels:
    """Return a prediction that marks every character with probability 1; empty for no characters.

    Raises:
        InputError: ``gold`` does not know its answer's length.
    """
    if gold.length is None:
        raise InputError(
            f"item {gold.id!r}: the gold labels do not say how long the answer is",
            expected="gold labels together with their answer",
        )
    if gold.length == 0:
        return mark_none(gold)
    whole = Extent(0, gold.length)
    return replace(gold, soft=(Soft(*whole, 1.0),), hard=(whole,), raters=())


def mark_none(gold: Labels) -> Labels:
    """Return a prediction that marks nothing."""
    return replace(gold, soft=(), hard=(), raters=())


def _share(part: Floats, whole: Floats, either: Floats) -> Floats:
    """``part`` / ``whole``; 1 where neither side has anything, 0 where only the other has."""
    shares: Floats = (either == 0).astype(np.float64)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


def _max_iou(golds: Sequence[Labels], found: Track, bases: Ints) -> list[float | None]:
    counts = np.array([len(gold.raters) for gold in golds])
    item = np.repeat(np.arange(len(golds)), counts)  # of each rater
    raters = Track.of([rater for gold in golds for rater in gold.raters], bases[item])
    common = raters.common(found)
    either = raters.sums(raters.size) + found.sums(found.size)[item]
    best = np.zeros(len(golds))
    np.maximum.at(best, item, _share(common, either - common, either))
    return [iou if known else None for iou, known in zip(best.tolist(), counts, strict=True)]


def _span_f1(wanted: Track, found: Track) -> Floats:
    spans = wanted.sums(np.ones_like(wanted.start)) + found.sums(np.ones_like(found.start))
    right = np.zeros_like(wanted.start)
    if len(found.start):
        at = np.minimum(np.searchsorted(found.start, wanted.start), len(found.start) - 1)
        right += (found.start[at] == wanted.start) & (found.end[at] == wanted.end)
    return _share(2 * wanted.sums(right), spans, spans)


def _check_fit(gold: Labels, pred: Labels) -> int:
    """Return the answer's length once both sides fit it."""
    if gold.id != pred.id:
        raise InputError(
            f"gold of item {gold.id!r} with the prediction for {pred.id!r}",
            expected="pairs with the same id",
        )
    length = pred.length if gold.length is None else gold.length
    if length is None:
        raise InputError(
            f"item {gold.id!r}: neither gold nor prediction says how long the answer is",
            expected="gold labels together with their answer",
        )
    if pred.length is not None and pred.length != length:
        raise InputError(
            f"item {gold.id!r}: the predicted answer has {pred.length} characters, "
            f"the gold answer {length}",
            expected="labels of the same answer",
        )
    for side, labels in (("gold", gold), ("predicted", pred)):
        field, end = "soft_labels", labels.soft[-1].end if labels.soft else 0
        if labels.hard and labels.hard[-1].end > end:
            field, end = "hard_labels", labels.hard[-1].end
        if end > length:
            raise InputError(
                f"item {labels.id!r}: {side} labels end at {end}, past the answer",
                field=field,
                found=end,
                expected=f"at most {length}, the answer's length in characters",
            )
    return length

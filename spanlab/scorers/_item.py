"""The scores of one item."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

from spanlab.errors import InputError
from spanlab.labels import Extent, Labels, iou, length, overlap
from spanlab.scorers._spearman import spearman

METRICS: Final = ("iou", "corr", "max_iou", "precision", "recall", "f1", "span_f1")


class Frozen(BaseModel):
    """Base of all results."""

    model_config = ConfigDict(frozen=True)


class ItemScore(Frozen):
    """How right a prediction is on one item; ``score_item`` says what the figures mean."""

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

    Args:
        gold: what is right, with its raters if they are known.
        pred: the prediction; it may lack the answer's length.

    Raises:
        InputError: the ids or lengths differ, neither side knows the answer's length, or labels
            reach past the answer; names the id.
    """
    _check_fit(gold, pred)
    common = overlap(gold.hard, pred.hard)
    return ItemScore(
        id=gold.id,
        lang=gold.lang,
        iou=iou(gold.hard, pred.hard),
        corr=spearman(gold.soft, pred.soft, _length(gold, pred)),
        max_iou=max((iou(rater, pred.hard) for rater in gold.raters), default=None),
        precision=_share(common, pred.hard, gold.hard),
        recall=_share(common, gold.hard, pred.hard),
        f1=_f1(common, length(gold.hard), length(pred.hard)),
        span_f1=_f1(len({*gold.hard} & {*pred.hard}), len(gold.hard), len(pred.hard)),
    )


def _share(common: int, whole: tuple[Extent, ...], other: tuple[Extent, ...]) -> float:
    if not whole:
        return 0.0 if other else 1.0
    return common / length(whole)


def _f1(common: int, gold: int, pred: int) -> float:
    return 2 * common / (gold + pred) if gold or pred else 1.0


def _length(gold: Labels, pred: Labels) -> int:
    known = gold.length if gold.length is not None else pred.length
    if known is None:
        raise InputError(
            f"item {gold.id!r}: neither gold nor prediction says how long the answer is",
            expected="gold labels together with their answer",
        )
    return known


def _check_fit(gold: Labels, pred: Labels) -> None:
    if gold.id != pred.id:
        raise InputError(
            f"gold of item {gold.id!r} with the prediction for {pred.id!r}",
            expected="pairs with the same id",
        )
    known = _length(gold, pred)
    if pred.length is not None and pred.length != known:
        raise InputError(
            f"item {gold.id!r}: the predicted answer has {pred.length} characters, "
            f"the gold answer {known}",
            expected="labels of the same answer",
        )
    for side, labels in (("gold", gold), ("predicted", pred)):
        end = max([part[-1].end for part in (labels.soft, labels.hard) if part], default=0)
        if end > known:
            raise InputError(
                f"item {gold.id!r}: {side} labels end at {end}, past the answer",
                found=end,
                expected=f"at most {known}, the answer's length in characters",
            )

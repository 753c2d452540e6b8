"""Errors found in steps, file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from spanlab.base.errors import InputError
from spanlab.schema import Annotation, Item
from spanlab.scoring.label_scores import (
    RIGHT,
    LabelEvaluation,
    annotations_in,
    evaluation_of,
)
from spanlab.systems.safe.steps import error_marked, steps_in


class StepEvaluation(LabelEvaluation):
    """Scores of the steps of all items that both sides have finished, right steps included."""

    unit: ClassVar[str] = "step"
    kind: ClassVar[str] = "Error"
    kinds: ClassVar[str] = "types"


def score_step_files(
    predictions: Sequence[Path],
    golds: Sequence[Path],
    *,
    annotator: str | None = None,
    gold_annotator: str | None = None,
) -> StepEvaluation:
    """Score the errors that were found in steps; items are joined by their id.

    Args:
        predictions: files whose annotations mark wrong steps, with types of error as labels.
        golds: files with what is right.
        annotator: whose annotation is the prediction, where a file has several.
        gold_annotator: whose annotation is the gold, where it is not "gold".

    Raises:
        InputError: a file is wrong, or no step is common to both sides.
    """
    predicted = annotations_in(predictions, annotator, "prediction")
    gold = annotations_in(golds, gold_annotator, "gold")
    pairs: Counter[tuple[str, str]] = Counter()
    common = [name for name in gold if name in predicted]
    for name in common:
        item, right = gold[name]
        pairs.update(step_pairs(item, right, predicted[name][1]))
    if not pairs:
        raise InputError(
            "no step is in both files",
            expected="reasonings that both sides have finished, joined by their id",
        )
    return evaluation_of(StepEvaluation, pairs, items=len(common), missing=len(gold) - len(common))


def step_pairs(item: Item, gold: Annotation, predicted: Annotation) -> list[tuple[str, str]]:
    """Return each step's type of error by the gold annotation and by another one."""
    return [
        (error_marked(step, gold.spans) or RIGHT, error_marked(step, predicted.spans) or RIGHT)
        for step in steps_in(item.answer, item.lang)
    ]

"""Errors found in steps, file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, Final

from spanlab.datasets import AnnotatorChooser, Role, read
from spanlab.errors import InputError
from spanlab.figures import counted, figure
from spanlab.results import ResultTable, columns_of
from spanlab.schema import Annotation, Item

RIGHT: Final = "right"
WRONG: Final = "any error"


@dataclass(frozen=True)
class TypeScore:
    """How well a type of error is found; ``gold`` steps have it, ``found`` are said to.

    Precision, recall and F1 are in [0, 1], and 0 where nothing is found or nothing is there.
    """

    name: str
    gold: int
    found: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class StepEvaluation:
    """Scores of the steps of all items that both sides have finished.

    Attributes:
        items, steps: how many were compared; ``missing`` gold items the prediction lacks.
        accuracy: the share of steps whose type is the same, right steps included.
        macro_f1: the mean of F1 over the types that gold steps have; 0 where all are right.
        types: a score for every type, and for steps with any error at the end.
        confusion: steps by gold and predicted type, "right" for none.
    """

    items: int
    steps: int
    missing: int
    accuracy: float
    macro_f1: float
    types: tuple[TypeScore, ...]
    confusion: Mapping[str, Mapping[str, int]]

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the scores by type of error, and which types were taken for which."""
        missing = f"{counted(self.missing, 'gold item')} without a prediction: not scored."
        types = ResultTable(
            key="types",
            title=f"Errors in {counted(self.steps, 'step')} of {counted(self.items, 'item')}",
            columns=(
                *columns_of("text", "Error"),
                *columns_of("count", "Gold", "Found"),
                *columns_of("score", "Precision", "Recall", "F1"),
            ),
            rows=tuple(astuple(score) for score in self.types),
            remarks=(
                f"Accuracy {figure(self.accuracy)}, macro F1 over types {figure(self.macro_f1)}.",
                *([missing] if self.missing else []),
            ),
        )
        confused = tuple(
            (gold, predicted, count)
            for gold, counts in self.confusion.items()
            for predicted, count in counts.items()
            if gold != predicted
        )
        confusion = ResultTable(
            key="confusion",
            title="Types taken for others",
            columns=(*columns_of("text", "Gold", "Taken for"), *columns_of("count", "Steps")),
            rows=confused,
        )
        return (types, confusion) if confused else (types,)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return asdict(self)


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
    predicted = _annotations(predictions, annotator, "prediction")
    gold = _annotations(golds, gold_annotator, "gold")
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
    return _evaluation(pairs, items=len(common), missing=len(gold) - len(common))


def _annotations(
    files: Sequence[Path], annotator: str | None, role: Role
) -> dict[str, tuple[Item, Annotation]]:
    chooser = AnnotatorChooser(annotator, role)
    annotations = {}
    for file in files:
        for record in read(file):
            annotation = chooser.done(record)
            if annotation is not None:
                annotations[record.item.id] = (record.item, annotation)
    return annotations


def step_pairs(item: Item, gold: Annotation, predicted: Annotation) -> list[tuple[str, str]]:
    """Return each step's type of error by the gold annotation and by another one."""
    from spanlab.systems.safe.steps import error_marked, steps_in

    return [
        (error_marked(step, gold.spans) or RIGHT, error_marked(step, predicted.spans) or RIGHT)
        for step in steps_in(item.answer, item.lang)
    ]


def _evaluation(
    pairs: Mapping[tuple[str, str], int], *, items: int, missing: int
) -> StepEvaluation:
    steps = sum(pairs.values())
    names = sorted({name for pair in pairs for name in pair} - {RIGHT})
    types = [_score(name, pairs, {name}) for name in names]
    present = [type_.f1 for type_ in types if type_.gold]
    confusion: dict[str, dict[str, int]] = {}
    for (gold, predicted), count in sorted(pairs.items()):
        confusion.setdefault(gold, {})[predicted] = count
    return StepEvaluation(
        items=items,
        steps=steps,
        missing=missing,
        accuracy=sum(count for (gold, predicted), count in pairs.items() if gold == predicted)
        / steps,
        macro_f1=sum(present) / len(present) if present else 0.0,
        types=(*types, _score(WRONG, pairs, set(names))),
        confusion=confusion,
    )


def _score(name: str, pairs: Mapping[tuple[str, str], int], types: set[str]) -> TypeScore:
    n_gold = sum(count for (gold, _), count in pairs.items() if gold in types)
    n_found = sum(count for (_, predicted), count in pairs.items() if predicted in types)
    n_right = sum(
        count for (gold, predicted), count in pairs.items() if gold in types and predicted in types
    )
    return TypeScore(
        name=name,
        gold=n_gold,
        found=n_found,
        precision=n_right / n_found if n_found else 0.0,
        recall=n_right / n_gold if n_gold else 0.0,
        f1=2 * n_right / (n_found + n_gold) if n_found + n_gold else 0.0,
    )

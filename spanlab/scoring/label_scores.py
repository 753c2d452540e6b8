"""Labels of spans against those of others, each label by itself, file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from spanlab.base.errors import InputError
from spanlab.formats import AnnotatorChooser, Role, read
from spanlab.output.figures import counted, figure
from spanlab.output.tables import ResultTable, columns_of
from spanlab.schema import Annotation, Item
from spanlab.scoring.calibration import UNMARKED, label_pairs
from spanlab.scoring.files import none_finished

RIGHT: Final = "right"
WRONG: Final = "any error"


@dataclass(frozen=True)
class TypeScore:
    """How well a label is found; ``gold`` characters, or steps, have it, ``found`` are said to.

    Precision, recall and F1 are in [0, 1], and 0 where nothing is found or nothing is there.
    """

    name: str
    gold: int
    found: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class LabelEvaluation:
    """Scores of labels, one by one, on all items that both sides have finished.

    What is counted, a ``unit``, are the characters that either side marks; a subclass may count
    others.

    Attributes:
        items, total: how many items and units were compared; ``missing`` gold items the prediction
            lacks.
        accuracy: the share of units whose label is the same.
        macro_f1: the mean of F1 over the labels that gold units have; 0 without any.
        types: a score for every label, and for units with any at the end.
        confusion: units by gold and predicted label, "right" for none.
    """

    items: int
    total: int
    missing: int
    accuracy: float
    macro_f1: float
    types: tuple[TypeScore, ...]
    confusion: Mapping[str, Mapping[str, int]]
    unit: ClassVar[str] = "character"
    kind: ClassVar[str] = "Label"
    kinds: ClassVar[str] = "labels"

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the scores by label, and which labels were taken for which."""
        means = f"Accuracy {figure(self.accuracy)}, "
        means += f"macro F1 over {self.kinds} {figure(self.macro_f1)}."
        missing = f"{counted(self.missing, 'gold item')} without a prediction: not scored."
        types = ResultTable(
            key="types",
            title=f"{self.kind}s in {counted(self.total, self.unit)} of "
            f"{counted(self.items, 'item')}",
            columns=(
                *columns_of("text", self.kind),
                *columns_of("count", "Gold", "Found"),
                *columns_of("score", "Precision", "Recall", "F1"),
            ),
            rows=tuple(astuple(score) for score in self.types),
            remarks=(
                means,
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
            title=f"{self.kinds.capitalize()} taken for others",
            columns=(
                *columns_of("text", "Gold", "Taken for"),
                *columns_of("count", f"{self.unit.capitalize()}s"),
            ),
            rows=confused,
        )
        return (types, confusion) if confused else (types,)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return {f"{self.unit}s" if key == "total" else key: of for key, of in asdict(self).items()}


Evaluation = TypeVar("Evaluation", bound=LabelEvaluation)


def score_label_files(
    predictions: Sequence[Path],
    golds: Sequence[Path],
    *,
    annotator: str | None = None,
    gold_annotator: str | None = None,
) -> LabelEvaluation:
    """Score spans label by label, in characters; items are joined by their id.

    Args:
        predictions: files whose annotations have labels.
        golds: files with the labels that count as right.
        annotator: whose annotation is the prediction, where a file has several.
        gold_annotator: whose annotation is the gold, where it is not "gold".

    Raises:
        InputError: a file is wrong, no item is common to both sides, or neither marks anything.
    """
    predicted = annotations_in(predictions, annotator, "prediction")
    gold = annotations_in(golds, gold_annotator, "gold")
    pairs: Counter[tuple[str, str]] = Counter()
    common = [name for name in gold if name in predicted]
    for name in common:
        for labels, count in label_pairs(gold[name][1], predicted[name][1]).items():
            of_gold, of_prediction = (RIGHT if label == UNMARKED else label for label in labels)
            pairs[of_gold, of_prediction] += count
    if not pairs:
        raise InputError(
            "no character is marked in an item that both files have",
            expected="spans with labels in items that both sides have finished, joined by id",
        )
    return evaluation_of(LabelEvaluation, pairs, items=len(common), missing=len(gold) - len(common))


def annotations_in(
    files: Sequence[Path], annotator: str | None, role: Role
) -> dict[str, tuple[Item, Annotation]]:
    """Return the items of files with the annotation that is meant, by their ids.

    Raises:
        InputError: a file is wrong, or there is no such annotation in them.
    """
    chooser = AnnotatorChooser(annotator, role)
    annotations, is_any = {}, False
    for file in files:
        for record in read(file):
            annotation = chooser.done(record)
            is_any |= annotation is not None
            if annotation is not None and not annotation.is_verdict_only:
                annotations[record.item.id] = (record.item, annotation)
    if not is_any:
        raise none_finished(files, annotator)
    return annotations


def evaluation_of(
    kind: type[Evaluation], pairs: Mapping[tuple[str, str], int], *, items: int, missing: int
) -> Evaluation:
    """Return the figures of units, counted by their gold and their predicted label."""
    total = sum(pairs.values())
    names = sorted({name for pair in pairs for name in pair} - {RIGHT})
    types = [_score(name, pairs, {name}) for name in names]
    present = [type_.f1 for type_ in types if type_.gold]
    confusion: dict[str, dict[str, int]] = {}
    for (gold, predicted), count in sorted(pairs.items()):
        confusion.setdefault(gold, {})[predicted] = count
    return kind(
        items=items,
        total=total,
        missing=missing,
        accuracy=sum(count for (gold, predicted), count in pairs.items() if gold == predicted)
        / total,
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

"""Predictions against gold labels, file against file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from spanlab.datasets import Role, read_placed_labels
from spanlab.errors import InputError
from spanlab.labels import Labels
from spanlab.scorers import Comparison, Report, compare, mark_all, mark_none, score, score_item


@dataclass(frozen=True)
class Evaluation:
    """Scores of a prediction, beside what marking everything and marking nothing would get.

    ``missing`` are gold ids without a prediction, ``extra`` predicted ids without gold; neither
    takes part in the scores. ``against`` compares with a second prediction, if one was given.
    """

    report: Report
    everything: Report
    nothing: Report
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    against: Comparison | None = None


class _Found(NamedTuple):
    """Labels and where they were found."""

    labels: Labels
    file: Path
    line: int
    unit: str

    def place(self, error: InputError) -> InputError:
        return error.at(file=self.file, line=self.line, unit=self.unit)


def score_files(
    predictions: Sequence[Path],
    golds: Sequence[Path],
    *,
    annotator: str | None = None,
    gold_annotator: str | None = None,
    against: Sequence[Path] = (),
) -> Evaluation:
    """Score prediction files against gold files on the full item ids that both sides have.

    Args:
        predictions: files of any readable format, Mu-SHROOM submissions included.
        golds: files with gold labels.
        annotator: whose annotation is the prediction, where a file has several.
        gold_annotator: whose annotation is the gold, where it is not "gold".
        against: files of a second system, for a paired test.

    Raises:
        InputError: a file is wrong, an id is repeated, or no id is common to both sides.
    """
    gold = _labels(golds, gold_annotator, "gold")
    predicted = _labels(predictions, annotator, "prediction")
    report = _score(predicted, gold, predictions, golds)
    second = _labels(against, annotator, "prediction")
    common = [gold[name].labels for name in gold if name in predicted]
    return Evaluation(
        report=report,
        everything=score((labels, mark_all(labels)) for labels in common),
        nothing=score((labels, mark_none(labels)) for labels in common),
        missing=tuple(name for name in gold if name not in predicted),
        extra=tuple(name for name in predicted if name not in gold),
        against=compare(report, _score(second, gold, against, golds)) if against else None,
    )


def _score(
    predicted: Mapping[str, _Found],
    gold: Mapping[str, _Found],
    prediction_files: Sequence[Path],
    gold_files: Sequence[Path],
) -> Report:
    common = [name for name in gold if name in predicted]
    if not common:
        raise InputError(
            f"no item id is in both {_names(prediction_files)} and {_names(gold_files)}",
            found=f"{_example(predicted)} and {_example(gold)}",
            expected="predictions and gold labels of the same items, joined by their full id",
        )
    try:
        return score((gold[name].labels, predicted[name].labels) for name in common)
    except InputError:
        for name in common:
            _check(gold[name], predicted[name])
        raise


def _check(gold: _Found, predicted: _Found) -> None:
    """Raise the scorer's error on a pair, if it has one, with the place of the wrong labels."""
    try:
        score_item(gold.labels, predicted.labels)
    except InputError as error:
        # Gold labels were checked against their answer when they were read, if there is one.
        unsized = gold.labels.length is None and predicted.labels.length is None
        raise (gold if unsized else predicted).place(error) from None


def _labels(files: Sequence[Path], annotator: str | None, role: Role) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    for file in files:
        for labels, line, unit in read_placed_labels(file, annotator=annotator, role=role):
            one = _Found(labels, file, line, unit)
            if labels.id in found:
                raise one.place(
                    InputError(
                        "this item id occurs twice",
                        field="id",
                        found=labels.id,
                        expected="every id once over all files of one side",
                    )
                )
            found[labels.id] = one
    if files and not found:
        raise InputError(
            f"{_names(files)}: there is no finished annotation"
            + (f" by {annotator!r}" if annotator else ""),
            expected="labels to score; --annotator and --gold say whose",
        )
    return found


def _names(files: Sequence[Path]) -> str:
    return ", ".join(str(file) for file in files[:3]) + (", …" if len(files) > 3 else "")


def _example(labels: Mapping[str, _Found]) -> str:
    return f"{next(iter(labels))!r}…" if labels else "no items"

"""Trains the detector on one's own labels, and says what its model can do and what not."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from spanlab.base.fields import FrozenModel
from spanlab.formats import ReadOptions, read
from spanlab.output.tables import MeanInterval
from spanlab.schema import Item, Record
from spanlab.scoring.calibration import CalibrationSums
from spanlab.scoring.report import score
from spanlab.systems.offline.calibration import Calibration, RatedAnswer, calibrate
from spanlab.systems.offline.detector import OfflineDetector
from spanlab.systems.offline.model import digest
from spanlab.systems.offline.training import Progress, folds, train_offline
from spanlab.text.labels import ItemLabels, labels_of

LIMITS = (
    "A lexical evidence checker, no fact checker: it knows which words, numbers and names stand "
    "where in the passages, not what they mean. It is strong where an answer contains errors and "
    "the passages say otherwise in similar words; it takes correct statements in quite other words "
    "for doubtful, follows passages that are wrong, and misses errors made of words that the "
    "passages hold. Without passages it knows only how wrong answers tend to look. Probabilities "
    "are estimates of the share of annotators that would mark a word, as the training data's did."
)
_FEW = 500  # labelled answers; on 120 of them a new model's IoU was .286, the shipped one's .363
Mode = Literal["with passages", "another item's passages", "without passages"]

# The detector judges an answer by itself where passages are about something else.
CALIBRATED_BY: dict[Mode, Mode] = {"another item's passages": "without passages"}


class ModeScores(FrozenModel):
    """Cross-validated scores of one mode: macro over languages with intervals, and each language.

    ``languages`` maps a language to its mean IoU and Corr, ``calibration_errors`` to the expected
    calibration error of its characters, in [0, 1], calibrated on the other folds.
    """

    mode: Mode
    iou: MeanInterval
    corr: MeanInterval
    languages: dict[str, tuple[float, float]]
    calibration_errors: dict[str, float] = Field(default_factory=dict)


class ModelCard(FrozenModel):
    """A model's origin, its scores and its limits."""

    model: str
    sha256: str
    size: int
    trained: str
    command: str
    files: tuple[str, ...]
    annotator: str
    items: dict[str, int]
    folds: int
    scores: tuple[ModeScores, ...]
    limits: str = LIMITS


@dataclass(frozen=True)
class TrainingJob:
    """Labelled files to train on, and the model file to write, with the card (``.json``) beside it.

    ``contexts`` are passages for the items, as in ``ReadOptions``; ``annotator`` says whose
    annotation is learnt. ``folds`` of a cross-validation give the card's scores: 2 or more, or 0
    for none. ``command`` is the command line, for the card.
    """

    files: Sequence[Path]
    target: Path
    contexts: Path | None = None
    annotator: str = "gold"
    folds: int = 0
    command: str = ""


def train_files(
    job: TrainingJob,
    *,
    on_warning: Callable[[str], None] = lambda message: None,
    on_progress: Progress = lambda task, done, total: None,
) -> ModelCard:
    """Train the offline detector, write the model with its card, and return the card.

    ``on_warning`` is called with each remark of a reader, ``on_progress`` with a task, the number
    of its steps that are done, and the number of all.

    Raises:
        InputError: a file is wrong, labels are missing, or there is too little to learn from.
        UsageError: scikit-learn is not installed.
    """
    options = ReadOptions(contexts=job.contexts, on_warning=on_warning)
    records = [record for file in job.files for record in read(file, options)]
    if len(records) < _FEW:
        on_warning(
            f"{len(records)} labelled answers are few: below {_FEW} a model made from nothing is "
            "worse than the shipped one with what `spanlab fit DATASET` learns from the same labels"
        )
    trained = train_offline(records, annotator=job.annotator, on_progress=on_progress)
    rated = _cross_validate(records, job, on_progress) if job.folds else {}
    if rated:
        given, blind = (
            rated[mode].calibrations() for mode in ("with passages", "without passages")
        )
        trained = trained.calibrated(given=given, blind=blind)
    model = trained.dump()
    card = ModelCard(
        model=job.target.name,
        sha256=digest(model),
        size=len(model),
        trained=datetime.now(UTC).date().isoformat(),
        command=job.command,
        files=tuple(file.name for file in job.files),
        annotator=job.annotator,
        items=dict(sorted(Counter(record.item.lang for record in records).items())),
        folds=job.folds,
        scores=tuple(
            answers.scores(mode, rated[CALIBRATED_BY.get(mode, mode)])
            for mode, answers in rated.items()
        ),
    )
    _replace(job.target, model)
    _replace(job.target.with_suffix(".json"), f"{card.model_dump_json(indent=2)}\n".encode())
    return card


@dataclass
class _HeldOutAnswers:
    """The answers of each fold in one mode, as a model of the other folds marks them."""

    folds: list[list[tuple[ItemLabels, ItemLabels]]] = field(default_factory=list)

    def calibrations(self, without: int | None = None) -> dict[str, Calibration]:
        """Calibrate by all folds, or by all but one."""
        return calibrate(
            RatedAnswer(gold.lang, found.soft, gold.soft, gold.length or 0)
            for number, fold in enumerate(self.folds)
            if number != without
            for gold, found in fold
        )

    def scores(self, mode: Mode, calibrating: _HeldOutAnswers) -> ModeScores:
        """Score all answers, with probabilities that the other folds calibrate in some mode."""
        report = score(pair for fold in self.folds for pair in fold)
        return ModeScores(
            mode=mode,
            iou=report.macro.iou,
            corr=report.macro.corr,
            languages={
                r.lang: (round(r.iou.mean, 3), round(r.corr.mean, 3)) for r in report.languages
            },
            calibration_errors=self._errors(calibrating),
        )

    def _errors(self, calibrating: _HeldOutAnswers) -> dict[str, float]:
        sums: dict[str, CalibrationSums] = {}
        for number, fold in enumerate(self.folds):
            calibrations = calibrating.calibrations(without=number)
            for gold, found in fold:
                calibration = calibrations.get(gold.lang, Calibration())
                soft = [part._replace(prob=calibration.apply(part.prob)) for part in found.soft]
                sums.setdefault(gold.lang, CalibrationSums()).add(soft, gold.soft, gold.length or 0)
        reports = {lang: total.result() for lang, total in sorted(sums.items())}
        return {lang: round(report.error, 3) for lang, report in reports.items() if report}


def _cross_validate(
    records: Sequence[Record], job: TrainingJob, on_progress: Progress
) -> dict[Mode, _HeldOutAnswers]:
    annotator = job.annotator
    neighbours = _neighbours(records)
    rated: dict[Mode, _HeldOutAnswers] = {}
    for model, held_out in folds(records, job.folds, annotator=annotator, on_progress=on_progress):
        detector = OfflineDetector(model)
        pairs: dict[Mode, list[tuple[ItemLabels, ItemLabels]]] = {}
        for record in held_out:
            gold, item = labels_of(record, annotator), record.item
            blind = item.model_copy(update={"passages": ()})
            wrong = item.model_copy(update={"passages": neighbours[item.id].passages})
            variants: dict[Mode, Item] = {
                "with passages": item,
                "another item's passages": wrong,
                "without passages": blind,
            }
            for mode, variant in variants.items():
                annotation = detector.annotate(variant)
                example = Record(item=variant, annotations=(annotation,))
                pairs.setdefault(mode, []).append((gold, labels_of(example, detector.name)))
        for mode, compared in pairs.items():
            rated.setdefault(mode, _HeldOutAnswers()).folds.append(compared)
    return rated


def _neighbours(records: Iterable[Record]) -> dict[str, Item]:
    """Return for each item the next one of its language, with passages on something else."""
    by_language: dict[str, list[Item]] = {}
    for record in records:
        by_language.setdefault(record.item.lang, []).append(record.item)
    return {
        item.id: items[(at + 1) % len(items)]
        for items in by_language.values()
        for at, item in enumerate(items)
    }


def _replace(target: Path, data: bytes) -> None:
    """Write a file that appears only when it is complete."""
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(data)
    written = Path(file.name)
    written.chmod(0o644)  # a temporary file can be read by its owner alone
    written.replace(target)

"""Trains the detector on one's own labels, and says what its model can do and what not."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
from spanlab.systems.offline.detector import OfflineDetector
from spanlab.systems.offline.model import digest
from spanlab.systems.offline.training import HELD_OUT, Progress, folds, train_offline
from spanlab.text.labels import ItemLabels, labels_of

LIMITS = (
    "A lexical evidence checker, no fact checker: it knows which words, numbers and names stand "
    "where in the passages, not what they mean. It is strong where an answer contains errors and "
    "the passages say otherwise in similar words. In answers made from their passages it marks "
    "little: it misses most errors, above all those made of words that the passages hold. It "
    "follows passages that are wrong. Without passages it knows only how wrong answers tend to "
    "look. Probabilities are estimates of the share of annotators that would mark a word, as the "
    "training data's did."
)
_FEW = 500  # labelled answers; on 120 of them a new model's IoU was .286, the shipped one's .363
Mode = Literal[
    "with passages",
    "closed-book",
    "another item's passages",
    "without passages",
    "made from its passages",
]


class ModeScores(FrozenModel):
    """Cross-validated scores of one mode: macro over languages with intervals, and each language.

    All modes but the last one are of answers to a question, the last one of all others;
    "closed-book" are those with passages, judged by that option. ``languages``
    maps a language to its mean IoU and Corr, ``calibration_errors`` to the expected calibration
    error of its characters, in [0, 1].
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
    for none; their models have a third of the trees. ``command`` is the command line, for the card.
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
        scores=tuple(_scores(mode, pairs) for mode, pairs in rated.items()),
    )
    _replace(job.target, model)
    _replace(job.target.with_suffix(".json"), f"{card.model_dump_json(indent=2)}\n".encode())
    return card


Pairs = list[tuple[ItemLabels, ItemLabels]]


def _scores(mode: Mode, pairs: Pairs) -> ModeScores:
    """Score answers, each as a model of the other folds marks it."""
    report = score(pairs)
    sums: dict[str, CalibrationSums] = {}
    for gold, found in pairs:
        total = sums.setdefault(gold.lang, CalibrationSums())
        total.add(found.soft, gold.soft, gold.length or 0)
    reports = {lang: total.result() for lang, total in sorted(sums.items())}
    return ModeScores(
        mode=mode,
        iou=report.macro.iou,
        corr=report.macro.corr,
        languages={r.lang: (round(r.iou.mean, 3), round(r.corr.mean, 3)) for r in report.languages},
        calibration_errors={lang: round(r.error, 3) for lang, r in reports.items() if r},
    )


def _cross_validate(
    records: Sequence[Record], job: TrainingJob, on_progress: Progress
) -> dict[Mode, Pairs]:
    annotator = job.annotator
    neighbours = _neighbours(record for record in records if record.item.question.strip())
    rated: dict[Mode, Pairs] = {}
    parts = folds(records, job.folds, annotator=annotator, recipe=HELD_OUT, on_progress=on_progress)
    for model, held_out in parts:
        usual, closed_book = OfflineDetector(model), OfflineDetector(model, judge="closed-book")
        for record in held_out:
            gold, item = labels_of(record, annotator), record.item
            for mode, variant in _variants(item, neighbours.get(item.id)).items():
                detector = closed_book if mode == "closed-book" else usual
                annotation = detector.annotate(variant)
                example = Record(item=variant, annotations=(annotation,))
                pair = (gold, labels_of(example, detector.name))
                rated.setdefault(mode, []).append(pair)
    return rated


def _variants(item: Item, neighbour: Item | None) -> dict[Mode, Item]:
    """Return in which ways an item is judged; ``neighbour`` is None for one without a question."""
    if neighbour is None:
        return {"made from its passages": item}
    return {
        "with passages": item,
        "closed-book": item,
        "another item's passages": item.model_copy(update={"passages": neighbour.passages}),
        "without passages": item.model_copy(update={"passages": ()}),
    }


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

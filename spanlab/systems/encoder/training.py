"""Trains a classifier of tokens for the detector ``encoder`` on labels that people made.

1. Question, passages and answer become rows exactly as the detector reads them (format ``pair``).
2. A token's label is the share of people who marked its characters. 3. AdamW lessens the binary
cross entropy between label and probability; where passages take several windows, they count as one.
4. The network is written in ONNX with its tokenizer, and opened as any checkpoint is. 5. For each
fold a network of the other folds rates the items it has not seen; that gives the calibration, and
the scores, calibrated by the other folds. Items with the same passages are in one fold.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from spanlab.base.errors import InputError, SpanlabError, UsageError, missing_package
from spanlab.base.fields import FrozenModel
from spanlab.detection import DetectorSpec, detector
from spanlab.networks.checkpoint import SAFETENSORS, Checkpoint, folder_of, open_folder
from spanlab.networks.rewriter import refuse_code
from spanlab.networks.tokenizing import TokenizedPiece
from spanlab.output.tables import MeanInterval
from spanlab.schema import Item, Record, answer_hash
from spanlab.scoring.report import score
from spanlab.scoring.spans import mark_all, mark_none
from spanlab.systems.encoder import TokenOptions
from spanlab.systems.encoder.calibration import (
    LabelledItem,
    RatedItem,
    calibration_for,
    learn,
    rate_labelled,
    with_calibration,
    with_shares,
)
from spanlab.systems.encoder.checkpoints import replacing_folder
from spanlab.systems.encoder.detector import (
    FORMATS,
    NOTED,
    EncoderDetector,
    read_item,
    tokenizing_of,
)
from spanlab.systems.encoder.fitting import FitSettings, TrainingRow, write_network
from spanlab.systems.encoder.words import WordCalibration, marked
from spanlab.text.extents import Extent, merge
from spanlab.text.labels import ItemLabels, SoftLabel, harden

CALIBRATION: Final = "calibration.json"
LEAST: Final = 20  # items with labels
METHOD: Final = "temperature"
Progress = Callable[[str, int, int], None]  # what is being done, how far, of how many


@dataclass(frozen=True)
class EncoderTraining:
    """How to train: ``base`` is a folder with model.safetensors, ``target`` the folder to write.

    ``annotator`` says whose labels are learnt; None for those of all people, else gold. ``folds``
    are 2 or more, or 0 for no held-out scores and no calibration. ``rate`` is the highest learning
    rate.
    """

    base: str
    target: Path
    annotator: str | None = None
    epochs: int = 4
    folds: int = 3
    seed: int = 0
    rate: float = 1e-4


class HeldOutScores(FrozenModel):
    """Means over the items, with intervals, of what a network marks that has not seen them."""

    iou: MeanInterval
    corr: MeanInterval


class TrainingNote(FrozenModel):
    """What the configuration notes in its field ``spanlab``: how the checkpoint was made.

    ``items`` are counted by language. ``unread`` items left no room for their passages.
    ``learnt_from`` has the ``answer_hash`` of the answers.
    """

    format: str = "pair"
    base: str
    base_sha256: str
    items: dict[str, int]
    learnt_from: tuple[str, ...] = ()
    unread: int
    rows: int
    epochs: int
    folds: int
    seed: int
    rate: float
    minutes: float = 0.0
    held_out: HeldOutScores | None = None
    mark_none: HeldOutScores | None = None
    mark_all: HeldOutScores | None = None


class _Example(NamedTuple):
    """A labelled item, and how a network reads it."""

    labelled: LabelledItem
    rows: list[TrainingRow]


def train(
    records: Iterable[Record],
    how: EncoderTraining,
    *,
    on_progress: Progress = lambda task, done, total: None,
) -> TrainingNote:
    """Train a checkpoint, and write its folder once it is complete and can be opened.

    Raises:
        UsageError: torch, transformers or onnx is missing, the target is there, or there are too
            few labelled items.
        InputError: the base is missing, damaged or unsafe.
    """
    begun = time.perf_counter()
    _check_packages()
    if how.target.exists():
        raise UsageError(f"{how.target} already exists: name another folder with -o")
    base = _open_base(how.base)
    tokenizing = tokenizing_of(base, TokenOptions())
    examples, unread = list[_Example](), 0
    for labelled in with_shares(records, how.annotator):
        pieces = read_item(tokenizing, FORMATS["pair"], labelled.item)
        if isinstance(pieces, SpanlabError):
            unread += 1
        elif pieces:
            examples.append(_Example(labelled, training_rows(labelled, pieces)))
    if len(examples) < LEAST:
        raise UsageError(f"{len(examples)} items have labels and can be read: at least {LEAST}")
    note = TrainingNote(
        base=base.name,
        base_sha256=base.digest(),
        items=dict(sorted(Counter(example.labelled.item.lang for example in examples).items())),
        learnt_from=tuple(sorted({answer_hash(example.labelled.item) for example in examples})),
        unread=unread,
        rows=sum(len(example.rows) for example in examples),
        epochs=how.epochs,
        folds=how.folds,
        seed=how.seed,
        rate=how.rate,
    )
    trainer = _Trainer(base, how, on_progress)
    folds = trainer.held_out(examples) if how.folds else []
    if folds:
        note = note.model_copy(update=_scores(folds))
    with replacing_folder(how.target) as folder:
        trainer.write(examples, folder, "learning from all")
        minutes = round((time.perf_counter() - begun) / 60, 2)
        note = note.model_copy(update={"minutes": minutes})
        config = json.loads((folder / "config.json").read_bytes())
        config[NOTED] = note.model_dump(mode="json")
        (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
        if folds:
            rated = [rating for fold in folds for _, rating in fold]
            learnt = calibration_for(_detector(folder), rated, METHOD)
            learnt = learnt.model_copy(update={"checkpoint": how.target.name})
            (folder / CALIBRATION).write_text(learnt.model_dump_json(indent=2), encoding="utf-8")
    return note


def _check_packages() -> None:
    for package in ("torch", "transformers", "onnx"):
        if find_spec(package) is None:
            raise missing_package("training a checkpoint", package, "transformers")


def _open_base(name: str) -> Checkpoint:
    if not (folder_of(name) / SAFETENSORS).is_file():
        raise InputError(
            "the base has no weights to train",
            file=folder_of(name) / SAFETENSORS,
            expected="a folder with model.safetensors, tokenizer.json and config.json",
        )
    base = open_folder(name, SAFETENSORS)
    refuse_code(base)
    return base


def training_rows(labelled: LabelledItem, pieces: Sequence[TokenizedPiece]) -> list[TrainingRow]:
    """Return the rows of an item with the share of people who marked each token.

    That is the mean of the token's characters without white space. The windows in which a piece of
    the answer is read weigh 1 together.
    """
    shares, rows = labelled.shares(), list[TrainingRow]()
    visible = np.array([not letter.isspace() for letter in labelled.item.answer])
    for piece in pieces:
        for row in piece.rows:
            learnt = np.full(len(row.ids), np.nan, np.float32)
            for token, (start, end) in row.places.items():
                held = slice(piece.start + start, piece.start + end)
                if visible[held].any():
                    learnt[token] = shares[held][visible[held]].mean()
            rows.append(TrainingRow(row.ids, row.types, learnt, 1 / len(piece.rows)))
    return rows


def _scores(folds: Sequence[_Fold]) -> dict[str, HeldOutScores]:
    """Return the scores of networks that have not seen the items, of marking nothing and all.

    What a network says of its fold is calibrated by what others say of the other folds.
    """
    pairs = list[tuple[ItemLabels, ItemLabels]]()
    for fold in folds:
        learnt = learn(
            [rated for other in folds if other is not fold for _, rated in other], METHOD
        )
        pairs += [
            (gold := _gold(item, rated, len(pairs) + at), _predicted(gold, rated, learnt))
            for at, (item, rated) in enumerate(fold)
        ]
    compared = {
        "held_out": pairs,
        "mark_none": [(gold, mark_none(gold)) for gold, _ in pairs],
        "mark_all": [(gold, mark_all(gold)) for gold, _ in pairs],
    }
    macros = {name: score(rated).macro for name, rated in compared.items()}
    return {name: HeldOutScores(iou=m.iou, corr=m.corr) for name, m in macros.items()}


def _gold(item: Item, rated: RatedItem, number: int) -> ItemLabels:
    hard = tuple(harden(rated.marked))
    length = len(rated.answer)
    return ItemLabels(str(number), item.lang, rated.marked, hard, length=length)


def _predicted(gold: ItemLabels, rated: RatedItem, learnt: WordCalibration) -> ItemLabels:
    """Return what the detector marks with a calibration."""
    words, threshold = with_calibration(rated.words, learnt), learnt.threshold
    extents = marked(rated.answer, words, min(TokenOptions().floor, threshold), threshold)
    soft = tuple(SoftLabel(start, end, prob) for start, end, prob, _ in extents if prob)
    hard = merge(Extent(extent.start, extent.end) for extent in extents if extent.hard)
    return replace(gold, soft=soft, hard=tuple(hard))


def _detector(folder: Path) -> EncoderDetector:
    built = detector(DetectorSpec(detector="encoder", options={"model": str(folder)}))
    if not isinstance(built, EncoderDetector):
        raise TypeError("encoder is not an EncoderDetector")
    return built


_Fold = list[tuple[Item, RatedItem]]  # the items that one network has not seen, as it rates them


@dataclass
class _Trainer:
    """Trains one network after the other from a base, and reports progress."""

    base: Checkpoint
    how: EncoderTraining
    on_progress: Progress

    def held_out(self, examples: Sequence[_Example]) -> list[_Fold]:
        """Return the items of each fold, as a network of the other folds rates them."""
        groups = [_group(example.labelled.item) for example in examples]
        folds = list[_Fold]()
        for number in range(self.how.folds):
            inside = {*sorted(set(groups))[number :: self.how.folds]}
            seen = [e for e, group in zip(examples, groups, strict=True) if group not in inside]
            unseen = [
                e.labelled for e, group in zip(examples, groups, strict=True) if group in inside
            ]
            if not seen or not unseen:
                continue
            with tempfile.TemporaryDirectory() as folder:
                self.write(seen, Path(folder), f"fold {number + 1} of {self.how.folds}")
                rated = rate_labelled(_detector(Path(folder)), unseen)
            pairs = zip(unseen, rated, strict=True)
            folds.append([(labelled.item, words) for labelled, words in pairs if words is not None])
        if len(folds) < 2:
            raise InputError("all items have the same passages: use --folds 0")
        return folds

    def write(self, examples: Sequence[_Example], folder: Path, task: str) -> None:
        """Train a network on examples, and write its checkpoint."""
        rows = [row for example in examples for row in example.rows]
        settings = FitSettings(self.how.epochs, self.how.seed, self.how.rate)
        write_network(self.base, rows, settings, folder, partial(self.on_progress, task))


def _group(item: Item) -> str:
    """Return what is the same for items that must not be held out from each other."""
    same = "\n".join(passage.text for passage in item.passages) or item.question or item.answer
    return hashlib.sha256(same.encode()).hexdigest()

"""Calibrates an encoder's probabilities on labelled items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from spanlab.base.errors import InputError, SpanlabError, UsageError
from spanlab.detection import DetectorSpec, detector
from spanlab.schema import Item, Record
from spanlab.scoring.calibration import CalibrationSums, marked_shares
from spanlab.systems.encoder.detector import EncoderDetector
from spanlab.systems.encoder.words import FIT, Method, RatedWords, WordCalibration, marked
from spanlab.text.extents import Extent, iou, merge
from spanlab.text.labels import SoftLabel, flatten, harden

LEAST: Final = 10  # items with labels
_THRESHOLDS: Final = tuple(number / 20 for number in range(1, 20))


class CalibrationQuality(NamedTuple):
    """Expected calibration error of the characters in words, and mean IoU of the hard labels."""

    error: float
    iou: float


@dataclass(frozen=True)
class CalibrationResult:
    """A calibration learnt from all items, and its quality on held-out items.

    ``before`` and ``after`` are measured on each half of the items, calibrated on the other half.
    """

    calibration: WordCalibration
    before: CalibrationQuality
    after: CalibrationQuality
    unread: int


class RatedItem(NamedTuple):
    """An item's rated words, the share of people that marked each, and their labels."""

    words: RatedWords
    shares: NDArray[np.float64]
    marked: tuple[SoftLabel, ...]
    answer: str


def calibrate(
    records: Iterable[Record],
    options: Mapping[str, JsonValue],
    method: Method,
    *,
    annotator: str | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> CalibrationResult:
    """Learn to turn a checkpoint's ratings of words into probabilities.

    Args:
        records: items with labels; those without are left out.
        options: options of the detector ``encoder``; a calibration among them is not applied.
        method: temperature scaling, or isotonic regression.
        annotator: whose labels count; by default those of all people, else gold.
        on_progress: called with the number of items rated.

    Raises:
        UsageError: fewer than ten items have labels and can be read.
        InputError: the checkpoint is missing, damaged, unsuitable or unsafe.
    """
    plain = {name: value for name, value in options.items() if name != "calibration"}
    encoder = detector(DetectorSpec(detector="encoder", options=plain))
    if not isinstance(encoder, EncoderDetector):
        raise TypeError("encoder is not an EncoderDetector")
    items, unread = list[RatedItem](), 0
    labelled = with_shares(records, annotator)
    while batch := list(islice(labelled, encoder.batch)):
        rated = rate_labelled(encoder, batch)
        items += [item for item in rated if item is not None]
        unread += rated.count(None)
        on_progress(len(items) + unread)
    if len(items) < LEAST:
        raise UsageError(
            f"{len(items)} items have labels and can be read: a calibration needs at least {LEAST}"
        )
    halves = items[::2], items[1::2]
    held_out = [*zip(halves, (learn(half, method) for half in reversed(halves)), strict=True)]
    return CalibrationResult(
        calibration_for(encoder, items, method),
        _quality([(half, None) for half in halves]),
        _quality(held_out),
        unread,
    )


def calibration_for(
    encoder: EncoderDetector, items: Sequence[RatedItem], method: Method
) -> WordCalibration:
    """Learn a calibration that says for which weights it is, and from what it was learnt."""
    return learn(items, method).model_copy(
        update={
            "checkpoint": encoder.checkpoint.name,
            "sha256": encoder.digest,
            "items": len(items),
            "words": sum(len(item.words.places) for item in items),
        }
    )


class LabelledItem(NamedTuple):
    """An item, and the share of people who marked each stretch of its answer."""

    item: Item
    marked: tuple[SoftLabel, ...]

    def shares(self) -> NDArray[np.float64]:
        """Return that share for each character of the answer."""
        characters = np.zeros(len(self.item.answer))
        for start, end, prob in self.marked:
            characters[start:end] = prob
        return characters


def with_shares(records: Iterable[Record], annotator: str | None) -> Iterator[LabelledItem]:
    """Yield the items that have labels and an answer.

    Args:
        records: items with annotations.
        annotator: whose labels count; None for those of all people, else gold.
    """
    for record in records:
        finished = [a for a in record.finished if annotator in {None, a.annotator}]
        shares = marked_shares(finished)
        if shares is None and annotator is not None and finished:
            shares = flatten(finished[0].spans)  # of a vote
        if shares is not None and record.item.answer.strip():
            yield LabelledItem(record.item, tuple(shares))


def rate_labelled(
    encoder: EncoderDetector, labelled: Sequence[LabelledItem]
) -> list[RatedItem | None]:
    """Return the rated words of items beside their labels; None for what cannot be read."""
    return [
        None if isinstance(rated, SpanlabError) else _item(rated.words, labels)
        for labels, rated in zip(
            labelled, encoder.rate([labels.item for labels in labelled]), strict=True
        )
    ]


def _item(words: RatedWords, labels: LabelledItem) -> RatedItem:
    characters = labels.shares()
    shares = np.array([characters[start:end].mean() for start, end in words.places])
    return RatedItem(words, shares, labels.marked, labels.item.answer)


def learn(items: Sequence[RatedItem], method: Method) -> WordCalibration:
    """Learn probabilities and threshold from rated items.

    Raises:
        InputError: the answers have no words.
    """
    probs = np.concatenate([item.words.probs for item in items])
    shares = np.concatenate([item.shares for item in items])
    lengths = np.concatenate([_lengths(item.words) for item in items])
    if not len(probs):
        raise InputError("the answers have no words")
    fitted = FIT[method](probs, shares, lengths)
    ious = [_mean_iou(items, fitted, threshold) for threshold in _THRESHOLDS]
    best = max(ious)
    # Of equally good thresholds the one closest to one half, as people's hard labels have it.
    threshold = min(
        (threshold for threshold, value in zip(_THRESHOLDS, ious, strict=True) if value == best),
        key=lambda threshold: abs(threshold - 0.5),
    )
    return fitted.model_copy(update={"threshold": threshold})


def _quality(
    parts: Sequence[tuple[Sequence[RatedItem], WordCalibration | None]],
) -> CalibrationQuality:
    sums, ious = CalibrationSums(), list[float]()
    for items, learnt in parts:
        for item in items:
            words = with_calibration(item.words, learnt)
            soft = [
                SoftLabel(start, end, prob)
                for (start, end), prob in zip(words.places, words.probs.tolist(), strict=True)
                if prob > 0
            ]
            sums.add(soft, item.marked, len(item.answer))
            ious.append(_iou(item, words, 0.5 if learnt is None else learnt.threshold))
    report = sums.result()
    return CalibrationQuality(0.0 if report is None else report.error, float(np.mean(ious)))


def _mean_iou(items: Sequence[RatedItem], learnt: WordCalibration, threshold: float) -> float:
    return float(
        np.mean([_iou(item, with_calibration(item.words, learnt), threshold) for item in items])
    )


def _iou(item: RatedItem, words: RatedWords, threshold: float) -> float:
    extents = marked(item.answer, words, threshold, threshold)
    hard = merge(Extent(span.start, span.end) for span in extents)
    return iou(hard, harden(item.marked))


def with_calibration(words: RatedWords, learnt: WordCalibration | None) -> RatedWords:
    """Return words with calibrated probabilities."""
    return words if learnt is None else words._replace(probs=learnt.apply(words.probs))


def _lengths(words: RatedWords) -> NDArray[np.float64]:
    return np.array([end - start for start, end in words.places], dtype=np.float64)

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
from spanlab.schema import Record
from spanlab.scoring import CalibrationSums
from spanlab.scoring.calibration import marked_shares
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


class _RatedItem(NamedTuple):
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
    items, unread = list[_RatedItem](), 0
    labelled = _with_shares(records, annotator)
    while batch := list(islice(labelled, encoder.batch)):
        for (record, shares), rated in zip(
            batch, encoder.rate([record.item for record, _ in batch]), strict=True
        ):
            if isinstance(rated, SpanlabError):
                unread += 1
            else:
                items.append(_item(rated.words, shares, record.item.answer))
        on_progress(len(items) + unread)
    if len(items) < LEAST:
        raise UsageError(
            f"{len(items)} items have labels and can be read: a calibration needs at least {LEAST}"
        )
    halves = items[::2], items[1::2]
    learnt = [_learn(half, method) for half in halves]
    held_out = [*zip(halves, reversed(learnt), strict=True)]
    final = _learn(items, method).model_copy(
        update={
            "checkpoint": encoder.checkpoint.name,
            "sha256": encoder.digest,
            "items": len(items),
            "words": sum(len(item.words.places) for item in items),
        }
    )
    return CalibrationResult(
        final,
        _quality([(half, None) for half in halves]),
        _quality(held_out),
        unread,
    )


def _with_shares(
    records: Iterable[Record], annotator: str | None
) -> Iterator[tuple[Record, tuple[SoftLabel, ...]]]:
    for record in records:
        finished = [a for a in record.finished if annotator in {None, a.annotator}]
        shares = marked_shares(finished)
        if shares is None and annotator is not None and finished:
            shares = flatten(finished[0].spans)  # of a vote
        if shares is not None and record.item.answer.strip():
            yield record, tuple(shares)


def _item(words: RatedWords, marked_by: tuple[SoftLabel, ...], answer: str) -> _RatedItem:
    characters = np.zeros(len(answer))
    for start, end, prob in marked_by:
        characters[start:end] = prob
    shares = np.array([characters[start:end].mean() for start, end in words.places])
    return _RatedItem(words, shares, marked_by, answer)


def _learn(items: Sequence[_RatedItem], method: Method) -> WordCalibration:
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
    parts: Sequence[tuple[Sequence[_RatedItem], WordCalibration | None]],
) -> CalibrationQuality:
    sums, ious = CalibrationSums(), list[float]()
    for items, learnt in parts:
        for item in items:
            words = _apply_calibration(item.words, learnt)
            soft = [
                SoftLabel(start, end, prob)
                for (start, end), prob in zip(words.places, words.probs.tolist(), strict=True)
                if prob > 0
            ]
            sums.add(soft, item.marked, len(item.answer))
            ious.append(_iou(item, words, 0.5 if learnt is None else learnt.threshold))
    report = sums.result()
    return CalibrationQuality(0.0 if report is None else report.error, float(np.mean(ious)))


def _mean_iou(items: Sequence[_RatedItem], learnt: WordCalibration, threshold: float) -> float:
    return float(
        np.mean([_iou(item, _apply_calibration(item.words, learnt), threshold) for item in items])
    )


def _iou(item: _RatedItem, words: RatedWords, threshold: float) -> float:
    extents = marked(item.answer, words, threshold, threshold)
    hard = merge(Extent(span.start, span.end) for span in extents)
    return iou(hard, harden(item.marked))


def _apply_calibration(words: RatedWords, learnt: WordCalibration | None) -> RatedWords:
    return words if learnt is None else words._replace(probs=learnt.apply(words.probs))


def _lengths(words: RatedWords) -> NDArray[np.float64]:
    return np.array([end - start for start, end in words.places], dtype=np.float64)

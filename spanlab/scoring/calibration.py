"""Probabilities against the shares of annotators, and labels that are confused."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.base.fields import FrozenModel
from spanlab.schema import Annotation, AnnotatorKind, Record, Span
from spanlab.scoring.intervals import t_quantile
from spanlab.text.extents import Extent, coverage
from spanlab.text.labels import SoftLabel, flatten, hard_of

Array = NDArray[np.float64]
_BINS: Final = 10
_DRAWS: Final = 400  # samples of the sample: its quantiles then move by a hundredth of the error


class CalibrationBin(FrozenModel):
    """The ``characters`` whose probability is in (``low``, ``high``]; the first bin is 0 alone.

    ``prob`` is their mean probability, ``share`` the mean share of people who marked them.
    """

    low: float
    high: float
    characters: int
    prob: float
    share: float


class CalibrationReport(FrozenModel):
    """The bins that have characters; ``error`` is the expected calibration error.

    That is the mean distance between a bin's probability and its share of people, weighted by
    characters (Guo et al. 2017, "On Calibration of Modern Neural Networks"): 0 is perfect, 1 worst.
    ``interval`` is where it lies with 95 %, if the items are a sample.
    """

    bins: tuple[CalibrationBin, ...]
    error: float
    interval: tuple[float, float] | None = None


class CalibrationSums:
    """Running sums of one annotator's probabilities against shares of people, item by item."""

    def __init__(self) -> None:
        self._sums = np.zeros((3, _BINS + 1))

    def add(self, probs: Sequence[SoftLabel], shares: Sequence[SoftLabel], length: int) -> None:
        """Add an item whose answer has ``length`` characters, both lists flattened."""
        self._sums += _binned(probs, shares, length)

    def result(self) -> CalibrationReport | None:
        """Return the calibration; None where no characters were added."""
        return _report(self._sums) if self._sums[0].any() else None


class SampledCalibration:
    """A detector's calibration on all items, estimated from some that were drawn."""

    def __init__(self) -> None:
        self._sums: list[Array] = []
        self._odds: list[float] = []

    def add(self, record: Record, detector: Annotation, odds: float) -> None:
        """Add an item that was drawn with these odds; the record's finished annotations judge."""
        marked = marked_shares(record.finished)
        if marked is not None:
            spans = flatten(detector.spans)
            self._sums.append(_binned(spans, marked, len(record.item.answer)))
            self._odds.append(odds)

    def result(self) -> CalibrationReport | None:
        """Return the calibration of all items; None where nothing was added.

        Distances of few characters are large by chance. What they are too large by is what
        samples of the sample exceed it by (the bootstrap's estimate of a bias). The interval is
        theirs, and that of the error with each item's distances signed by the other items, which
        errs to the other side: on real labels the first alone held a small error in half of the
        samples of 30 items, the two together in nine tenths and of larger ones in .96 or more.
        """
        if not self._sums:
            return None
        sums, weights = np.array(self._sums), 1 / np.array(self._odds)
        report, n = _report(np.tensordot(weights, sums, 1)), len(sums)
        draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), _DRAWS)
        drawn = np.array([_error(total) for total in np.tensordot(draws * weights, sums, 1)])
        bias = drawn.mean() - report.error
        signed, half = _signed_error(sums, weights)
        low, high = np.quantile(drawn, (0.025, 0.975)) - bias
        ends = np.clip((min(low, signed - half), max(high, signed + half)), 0, 1)
        error = float(np.clip(report.error - bias, *ends))
        return CalibrationReport(
            bins=report.bins, error=error, interval=(float(ends[0]), float(ends[1]))
        )


def _signed_error(sums: Array, weights: Array) -> tuple[float, float]:
    """Return the error by signs that the other items give, and half its 95 % interval."""
    distances = (sums[:, 1] - sums[:, 2]) * weights[:, None]
    characters, n = sums[:, 0].sum(1) * weights, len(sums)
    signed = (np.sign(distances.sum(0) - distances) * distances).sum(1)
    error = signed.sum() / characters.sum()
    variance = ((signed - error * characters) ** 2).sum() * n / max(n - 1, 1)
    return float(error), float(t_quantile(max(n - 1, 1)) * variance**0.5 / characters.sum())


def _binned(probs: Sequence[SoftLabel], shares: Sequence[SoftLabel], length: int) -> Array:
    """Return by bins the number of characters, the sum of their probabilities, and of shares."""
    sums = np.zeros((3, _BINS + 1))
    for size, prob, share in _stretches(probs, shares, length):
        sums[:, ceil(prob * _BINS - 1e-9)] += (size, prob * size, share * size)
    return sums


def _error(sums: Array) -> float:
    return float(np.abs(sums[1] - sums[2]).sum() / sums[0].sum())


def _report(sums: Array) -> CalibrationReport:
    bins = tuple(
        CalibrationBin(
            low=max(at - 1, 0) / _BINS,
            high=at / _BINS,
            characters=round(size),
            prob=prob / size,
            share=share / size,
        )
        for at, (size, prob, share) in enumerate(sums.T.tolist())
        if size
    )
    return CalibrationReport(bins=bins, error=_error(sums))


def shares(raters: Sequence[Sequence[Extent]]) -> list[SoftLabel]:
    """Return the share of raters that mark each stretch, given merged marks of at least one."""
    weights = [1] * len(raters)
    return [
        SoftLabel(start, end, count / len(raters))
        for start, end, count in coverage(raters, weights)
    ]


def _stretches(
    probs: Sequence[SoftLabel], shares: Sequence[SoftLabel], length: int
) -> Iterator[tuple[int, float, float]]:
    """Yield how many characters have which probability and share, in text order."""
    lists, values = (probs, shares), [0.0, 0.0]
    events = sorted(
        (place, which, value)
        for which, softs in enumerate(lists)
        for soft in softs
        for place, value in ((soft.end, 0.0), (soft.start, soft.prob))
    )
    before = 0
    for place, which, value in events:
        if place > before:
            yield place - before, values[0], values[1]
            before = place
        values[which] = value
    if length > before:
        yield length - before, values[0], values[1]


@dataclass(frozen=True)
class AnnotatorCalibration:
    """The calibration of one annotator on ``n`` items, against people or against gold labels."""

    name: str
    n: int
    calibration: CalibrationReport


class CalibrationTally:
    """Gathers the calibration of detectors, and of votes that people took no part in."""

    def __init__(self, kinds: Mapping[str, AnnotatorKind]) -> None:
        self._kinds = kinds
        self._sums: dict[str, CalibrationSums] = {}
        self._items: dict[str, int] = {}

    def add(self, record: Record) -> None:
        """Add an item; where no person has finished it, gold labels say how many people marked."""
        marked = marked_shares(record.finished)
        if marked is None:
            return
        for annotation in record.finished:
            name = annotation.annotator
            if name in self._kinds and self._is_machine(annotation):
                sums = self._sums.setdefault(name, CalibrationSums())
                sums.add(flatten(annotation.spans), marked, len(record.item.answer))
                self._items[name] = self._items.get(name, 0) + 1

    def result(self) -> tuple[AnnotatorCalibration, ...]:
        """Return the calibrations, in the order of the annotators."""
        return tuple(
            AnnotatorCalibration(name, self._items[name], report)
            for name in self._kinds
            if name in self._sums and (report := self._sums[name].result()) is not None
        )

    def _is_machine(self, annotation: Annotation) -> bool:
        if annotation.kind is AnnotatorKind.VOTE:
            voters = {self._kinds.get(name) for name in annotation.voters}
            return voters == {AnnotatorKind.DETECTOR}
        return annotation.kind is AnnotatorKind.DETECTOR


def marked_shares(annotations: Sequence[Annotation]) -> list[SoftLabel] | None:
    """Return the share of people who marked each stretch of an answer.

    Args:
        annotations: finished annotations of an item.

    Returns:
        The shares of persons, else the gold labels' probabilities; None where there are neither.
    """
    placed = [annotation for annotation in annotations if not annotation.is_verdict_only]
    people = [hard_of(a) for a in placed if a.kind is AnnotatorKind.PERSON]
    if people:
        return shares(people)
    gold = next((a for a in placed if a.kind is AnnotatorKind.GOLD), None)
    return None if gold is None else flatten(gold.spans)


UNMARKED = "(not marked)"
UNLABELLED = "(no label)"
_BEYOND: Final = (1 << 62, 1 << 62, "")  # past any text: ends a walk without a special case
# Characters by the reference's label and an annotator's; not those that neither marked.
Confusion = Mapping[tuple[str, str], int]


class _LabelledPiece(NamedTuple):
    """Characters with one label; they do not overlap with those of other pieces."""

    start: int
    end: int
    label: str


class ConfusionSums:
    """Running counts of each annotator's labels against those of the reference."""

    def __init__(self, reference: str | None) -> None:
        self._reference = reference
        self._counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)

    def add(self, record: Record, marks: Mapping[str, Sequence[Extent]]) -> None:
        """Add the ``marks`` of all who finished an item, if the reference is among them."""
        finished = {a.annotator: a for a in record.annotations if a.annotator in marks}
        reference = finished.pop(self._reference or "", None)
        if reference is None or not _has_labels(reference):
            return
        right = _pieces(reference, marks[reference.annotator])
        for name, annotation in finished.items():
            if _has_labels(annotation):
                self._counts[name].update(_shared(right, _pieces(annotation, marks[name])))

    def result(self) -> Mapping[str, Confusion]:
        """Return the counts by annotator; without those that give no labels."""
        return {name: counts for name, counts in self._counts.items() if _tells(counts)}


def _tells(counts: Confusion) -> bool:
    """Say whether the counts have labels of both sides."""
    without = {UNMARKED, UNLABELLED}
    return all({pair[side] for pair in counts} - without for side in (0, 1))


def _has_labels(annotation: Annotation) -> bool:
    return any(span.label for span in annotation.spans) or not annotation.spans


def _pieces(annotation: Annotation, marks: Sequence[Extent]) -> list[_LabelledPiece]:
    """Return the pieces that an annotation marks, each with the label of its likeliest span."""
    pieces = []
    spans = sorted(annotation.spans, key=lambda span: span.prob)
    for first, last in marks:
        inside = [span for span in spans if span.start < last and span.end > first]
        cuts = {first, last}
        cuts |= {cut for span in inside for cut in (span.start, span.end)}
        places = sorted(cut for cut in cuts if first <= cut <= last)
        for start, end in pairwise(places):
            pieces.append(_LabelledPiece(start, end, _label(inside, start)))
    return pieces


def _label(spans: Sequence[Span], place: int) -> str:
    for span in reversed(spans):
        if span.start <= place < span.end:
            return span.label or UNLABELLED
    return UNLABELLED


def label_pairs(right: Annotation, predicted: Annotation) -> Counter[tuple[str, str]]:
    """Count an answer's characters by the labels of two annotations; see ``Confusion``."""
    return _shared(_pieces(right, hard_of(right)), _pieces(predicted, hard_of(predicted)))


def _shared(
    right: Sequence[_LabelledPiece], predicted: Sequence[_LabelledPiece]
) -> Counter[tuple[str, str]]:
    """Count characters by both labels, with those that only one of the two marked."""
    counts: Counter[tuple[str, str]] = Counter()
    for start, end, label in right:
        counts[label, UNMARKED] += end - start
    for start, end, label in predicted:
        counts[UNMARKED, label] += end - start
    predicted_pieces = iter(predicted)
    low, high, predicted_label = next(predicted_pieces, _BEYOND)
    for start, end, right_label in right:
        while high <= start:
            low, high, predicted_label = next(predicted_pieces, _BEYOND)
        while low < end:
            common = min(end, high) - max(start, low)
            counts[right_label, predicted_label] += common
            counts[right_label, UNMARKED] -= common
            counts[UNMARKED, predicted_label] -= common
            if high > end:
                break
            low, high, predicted_label = next(predicted_pieces, _BEYOND)
    return +counts

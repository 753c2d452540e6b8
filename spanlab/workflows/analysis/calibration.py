"""Probabilities against the shares of people, and labels that are confused."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from spanlab.extents import Extent
from spanlab.labels import SoftLabel, flatten, hard_of
from spanlab.schema import Annotation, AnnotatorKind, Record, Span
from spanlab.scorers import CalibrationReport, CalibrationSums, shares


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
    people = [hard_of(a) for a in annotations if a.kind is AnnotatorKind.PERSON]
    if people:
        return shares(people)
    gold = next((a for a in annotations if a.kind is AnnotatorKind.GOLD), None)
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
    """Say whether both sides have given a label."""
    without = {UNMARKED, UNLABELLED}
    return all({pair[side] for pair in counts} - without for side in (0, 1))


def _has_labels(annotation: Annotation) -> bool:
    return any(span.label for span in annotation.spans) or not annotation.spans


def _pieces(annotation: Annotation, marks: Sequence[Extent]) -> list[_LabelledPiece]:
    """Return what an annotation takes for hallucinated, with the label of the likeliest span."""
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

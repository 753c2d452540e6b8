"""Probabilities against the shares of people, and labels that are confused."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from spanlab.extents import Extent
from spanlab.labels import SoftLabel, flatten, hard_of
from spanlab.schema import Annotation, AnnotatorKind, Record, Span, Status
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
        done = [one for one in record.annotations if one.status is Status.DONE]
        marked = marked_shares(done)
        if marked is None:
            return
        for one in done:
            if one.annotator in self._kinds and self._is_machine(one):
                sums = self._sums.setdefault(one.annotator, CalibrationSums())
                sums.add(flatten(one.spans), marked, len(record.item.answer))
                self._items[one.annotator] = self._items.get(one.annotator, 0) + 1

    def result(self) -> tuple[AnnotatorCalibration, ...]:
        """Return the calibrations, in the order of the annotators."""
        return tuple(
            AnnotatorCalibration(name, self._items[name], report)
            for name in self._kinds
            if name in self._sums and (report := self._sums[name].result()) is not None
        )

    def _is_machine(self, one: Annotation) -> bool:
        if one.kind is AnnotatorKind.VOTE:
            voters = {self._kinds.get(name) for name in one.voters}
            return voters == {AnnotatorKind.DETECTOR}
        return one.kind is AnnotatorKind.DETECTOR


def marked_shares(done: Sequence[Annotation]) -> list[SoftLabel] | None:
    """Return the share of people who marked each stretch of an answer.

    Args:
        done: finished annotations of an item.

    Returns:
        The shares of persons, else the gold labels' probabilities; None where there are neither.
    """
    people = [hard_of(one) for one in done if one.kind is AnnotatorKind.PERSON]
    if people:
        return shares(people)
    gold = next((one for one in done if one.kind is AnnotatorKind.GOLD), None)
    return None if gold is None else flatten(gold.spans)


UNMARKED = "(not marked)"
UNLABELLED = "(no label)"
_BEYOND: Final = (1 << 62, 1 << 62, "")  # past any text: ends a walk without a special case
Confusion = Mapping[tuple[str, str], int]


"""Characters by the reference's label and an annotator's; not those that neither marked."""


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
        """Add all who finished an item, by their ``marks``, if the reference is among them."""
        done = {one.annotator: one for one in record.annotations if one.annotator in marks}
        reference = done.pop(self._reference or "", None)
        if reference is None or not _has_labels(reference):
            return
        right = _pieces(reference, marks[reference.annotator])
        for name, annotation in done.items():
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
    right: Sequence[_LabelledPiece], other: Sequence[_LabelledPiece]
) -> Counter[tuple[str, str]]:
    """Count characters by both labels, with those that only one of the two marked."""
    counts: Counter[tuple[str, str]] = Counter()
    for start, end, label in right:
        counts[label, UNMARKED] += end - start
    for start, end, label in other:
        counts[UNMARKED, label] += end - start
    others = iter(other)
    low, high, theirs = next(others, _BEYOND)
    for start, end, mine in right:
        while high <= start:
            low, high, theirs = next(others, _BEYOND)
        while low < end:
            common = min(end, high) - max(start, low)
            counts[mine, theirs] += common
            counts[mine, UNMARKED] -= common
            counts[UNMARKED, theirs] -= common
            if high > end:
                break
            low, high, theirs = next(others, _BEYOND)
    return +counts

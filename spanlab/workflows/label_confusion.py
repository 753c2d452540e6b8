"""Which labels annotators give to the same characters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from spanlab.extents import Extent
from spanlab.schema import Annotation, Record, Span

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

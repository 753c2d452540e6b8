"""Which labels annotators give to the same characters."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spanlab.labels import hard_of
from spanlab.schema import Annotation, Record, Span, Status

UNMARKED = "(not marked)"
UNLABELLED = "(no label)"

Confusion = Mapping[tuple[str, str], int]
"""Characters by the reference's label and an annotator's; not those that neither marked."""


@dataclass(frozen=True)
class _Piece:
    """Characters with one label; they do not overlap with those of other pieces."""

    start: int
    end: int
    label: str


class ConfusionSums:
    """Running counts of each annotator's labels against those of the reference."""

    def __init__(self, reference: str | None) -> None:
        self._reference = reference
        self._counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)

    def add(self, record: Record) -> None:
        """Add all who finished an item that the reference has finished too."""
        done = {one.annotator: one for one in record.annotations if one.status is Status.DONE}
        reference = done.pop(self._reference or "", None)
        if reference is None or not _has_labels(reference):
            return
        right = _pieces(reference)
        for name, annotation in done.items():
            if _has_labels(annotation):
                self._counts[name].update(_shared(right, _pieces(annotation)))

    def result(self) -> Mapping[str, Confusion]:
        """Return the counts by annotator; without those that give no labels."""
        return {name: counts for name, counts in self._counts.items() if _tells(counts)}


def _tells(counts: Confusion) -> bool:
    """Say whether both sides have given a label."""
    without = {UNMARKED, UNLABELLED}
    return all({pair[side] for pair in counts} - without for side in (0, 1))


def _has_labels(annotation: Annotation) -> bool:
    return any(span.label for span in annotation.spans) or not annotation.spans


def _pieces(annotation: Annotation) -> list[_Piece]:
    """Return what an annotation takes for hallucinated, with the label of the likeliest span."""
    pieces = []
    spans = sorted(annotation.spans, key=lambda span: span.prob)
    for extent in hard_of(annotation):
        inside = [span for span in spans if span.start < extent.end and span.end > extent.start]
        cuts = {extent.start, extent.end}
        cuts |= {cut for span in inside for cut in (span.start, span.end)}
        places = sorted(cut for cut in cuts if extent.start <= cut <= extent.end)
        for start, end in pairwise(places):
            pieces.append(_Piece(start, end, _label(inside, start)))
    return pieces


def _label(spans: Sequence[Span], place: int) -> str:
    for span in reversed(spans):
        if span.start <= place < span.end:
            return span.label or UNLABELLED
    return UNLABELLED


def _shared(right: Sequence[_Piece], other: Sequence[_Piece]) -> Counter[tuple[str, str]]:
    """Count characters by both labels, with those that only one of the two marked."""
    cuts = sorted({cut for piece in (*right, *other) for cut in (piece.start, piece.end)})
    counts: Counter[tuple[str, str]] = Counter()
    for start, end in pairwise(cuts):
        labels = _at(right, start), _at(other, start)
        if labels != (UNMARKED, UNMARKED):
            counts[labels] += end - start
    return counts


def _at(pieces: Sequence[_Piece], place: int) -> str:
    at = bisect_right(pieces, place, key=lambda piece: piece.start) - 1
    return pieces[at].label if at >= 0 and place < pieces[at].end else UNMARKED

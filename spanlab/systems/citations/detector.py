"""The detector that asks no model: the offline detector judges each stretch."""

from __future__ import annotations

from collections.abc import Callable

from spanlab.base.errors import UsageError
from spanlab.detection.base import DetectorKit
from spanlab.detection.building import detector
from spanlab.detection.entry import entries
from spanlab.schema import Annotation, AnnotatorKind, Interval, Item
from spanlab.systems.citations import JUDGE, NAME
from spanlab.systems.citations.findings import find_faults
from spanlab.systems.citations.support import restricted
from spanlab.text.citations import citations_of


class CitationDetector:
    """Marks what the cited passages do not say, and quotations that are not theirs."""

    name = NAME

    def __init__(self, judge: Callable[[Item], Annotation]) -> None:
        self._judge = judge

    def annotate(self, item: Item) -> Annotation:
        """Mark an item's answer; a note says what could not be judged."""
        citations = citations_of(item)
        if not any(passage.text.strip() for passage in item.passages):
            return _annotation(note="no passages were given: no citation can be looked up")
        findings = find_faults(item, citations, restricted(self._judge, item, citations))
        notes = []
        if not citations.stretches:
            notes.append("nothing is cited; only quotations were looked up")
        if citations.unread:
            numbers = ", ".join(map(str, sorted(set(citations.unread))))
            notes.append(f"not judged, as their sources are no passages: {numbers}")
        hard = tuple(Interval(start=span.start, end=span.end) for span in findings.spans)
        return _annotation(
            spans=findings.spans, hard=hard, claims=findings.claims, note="; ".join(notes) or None
        )


def _annotation(**fields: object) -> Annotation:
    return Annotation.model_validate({"annotator": NAME, "kind": AnnotatorKind.DETECTOR, **fields})


def create(_kit: DetectorKit) -> CitationDetector:
    """Build the detector.

    Raises:
        UsageError: the detector that judges is not installed.
    """
    if JUDGE not in {entry.name for entry in entries()}:
        raise UsageError(f"{NAME!r} judges by the detector {JUDGE!r}, which is not installed")
    return CitationDetector(detector(JUDGE).annotate)

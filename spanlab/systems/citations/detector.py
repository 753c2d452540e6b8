"""The detector that asks no model: the offline detector judges each stretch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spanlab.base.errors import UsageError
from spanlab.detection.base import DetectorKit
from spanlab.detection.building import detector
from spanlab.detection.entry import entries
from spanlab.schema import UNDETERMINED, Annotation, AnnotatorKind, Interval, Item, Status
from spanlab.systems.citations import JUDGE, NAME
from spanlab.systems.citations.findings import find_faults
from spanlab.systems.citations.support import Support, restricted
from spanlab.text.citations import ReadCitations, citations_of
from spanlab.text.languages import language_of
from spanlab.text.terms import share_language

_OTHER_LANGUAGE: Final = "the passages seem to be in another language: nothing was judged"


class CitationDetector:
    """Marks what the cited passages do not say, and quotations that are not theirs."""

    name = NAME

    def __init__(self, judge: Callable[[Item], Annotation]) -> None:
        self._judge = judge

    def annotate(self, item: Item) -> Annotation:
        """Mark an item's answer; a note says what could not be judged."""
        citations = citations_of(item)
        why_not = unjudged(item, citations)
        if why_not is not None:
            return _annotation(status=Status.SKIPPED, note=why_not)
        return _annotation(**judged(item, citations, restricted(self._judge, item, citations)))


def unjudged(item: Item, citations: ReadCitations) -> str | None:
    """Return why nothing of an answer can be judged; None if something can."""
    texts = [passage.text for passage in item.passages]
    if not any(text.strip() for text in texts):
        return "no passages were given: no citation can be looked up"
    if share_language(citations.plain, texts):
        return None
    told = {language_of(citations.plain), language_of("\n".join(texts))}
    return None if len(told) == 1 and UNDETERMINED not in told else _OTHER_LANGUAGE


def judged(item: Item, citations: ReadCitations, support: Support) -> dict[str, object]:
    """Return the fields of an annotation: spans, hard labels, claims and a note."""
    findings = find_faults(item, citations, support)
    notes = []
    if not citations.stretches:
        notes.append("nothing is cited; only quotations were looked up")
    unread = sorted({*citations.unread, *(number + 1 for number in findings.unread)})
    if unread:
        numbers = ", ".join(map(str, unread))
        notes.append(f"not judged, as the text of their sources is not given: {numbers}")
    return {
        "spans": findings.spans,
        "hard": tuple(Interval(start=span.start, end=span.end) for span in findings.spans),
        "claims": findings.claims,
        "note": "; ".join(notes) or None,
    }


def _annotation(**fields: object) -> Annotation:
    return Annotation.model_validate({"annotator": NAME, "kind": AnnotatorKind.DETECTOR, **fields})


def create(_kit: DetectorKit) -> CitationDetector:
    """Build the detector.

    Raises:
        UsageError: the detector that judges is not installed.
    """
    return CitationDetector(local_judge(NAME))


def local_judge(asking: str) -> Callable[[Item], Annotation]:
    """Return the judge of whole answers that asks no model.

    Raises:
        UsageError: it is not installed, and ``asking`` needs it.
    """
    if JUDGE not in {entry.name for entry in entries()}:
        raise UsageError(f"{asking!r} judges by the detector {JUDGE!r}, which is not installed")
    return detector(JUDGE).annotate

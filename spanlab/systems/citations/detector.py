"""The detector that asks no model: the offline detector judges each stretch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from spanlab.base.errors import UsageError
from spanlab.detection.base import DetectorKit
from spanlab.detection.building import detector
from spanlab.detection.entry import entries
from spanlab.schema import Annotation, AnnotatorKind, Interval, Item
from spanlab.systems.citations import JUDGE, NAME
from spanlab.systems.citations.findings import find_faults
from spanlab.systems.citations.support import Support, restricted
from spanlab.text.citations import ReadCitations, citations_of
from spanlab.text.terms import UNSPACED, terms

_WORD: Final = re.compile(rf"[{UNSPACED}]+|[^\W\d_{UNSPACED}]+")
_FEWEST: Final = 8  # small words of an answer, from which on it can be told
# Of the answers of data/citations.jsonl with passages of their own language at least .22 of these
# words are there, with passages of another at most .13.
_SHARED: Final = 0.15
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
            return _annotation(note=why_not)
        return _annotation(**judged(item, citations, restricted(self._judge, item, citations)))


def unjudged(item: Item, citations: ReadCitations) -> str | None:
    """Return why nothing of an answer can be judged; None if something can."""
    texts = [passage.text for passage in item.passages]
    if not any(text.strip() for text in texts):
        return "no passages were given: no citation can be looked up"
    return None if share_language(citations.plain, texts) else _OTHER_LANGUAGE


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


def share_language(answer: str, passages: Sequence[str]) -> bool:
    """Say whether an answer shares the small words of its passages, as texts of a language do."""
    small, others = _small_words(answer), set[str]().union(*map(_small_words, passages))
    return len(small) < _FEWEST or len(small & others) >= _SHARED * len(small)


def _small_words(text: str) -> set[str]:
    """Return the words without a capital letter or digit, which are no names."""
    return set(terms(" ".join(word for word in _WORD.findall(text) if word == word.lower())))


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

"""The detector ``citations``, through the function and the command."""

from __future__ import annotations

from pathlib import Path

from spanlab.detection import detector
from spanlab.formats import ReadOptions, read
from spanlab.schema import CitationLabel, Span

DATA = Path(__file__).parents[4] / "data" / "citations.jsonl"


def test_planted_faults_of_the_other_half_are_found() -> None:
    """What the guide says of these 40 answers, on which nothing was chosen."""
    right, marked, planted = (dict.fromkeys(CitationLabel, 0) for _ in range(3))
    for record in read(DATA, ReadOptions()):
        if record.item.meta["part"] != "judge":
            continue
        (gold,) = record.annotations
        found = detector("citations").annotate(record.item).spans
        for label in CitationLabel:
            of_label = [span for span in found if span.label == label]
            wrong = [span for span in gold.spans if span.label == label]
            marked[label] += len(of_label)
            planted[label] += len(wrong)
            right[label] += sum(any(_meet(span, other) for other in wrong) for span in of_label)
    share = {label: right[label] / marked[label] for label in CitationLabel}
    assert planted[CitationLabel.FABRICATED] == planted[CitationLabel.MISATTRIBUTED] == 8
    assert share[CitationLabel.FABRICATED] == share[CitationLabel.MISATTRIBUTED] == 1.0
    assert right[CitationLabel.FABRICATED] == right[CitationLabel.MISATTRIBUTED] == 8
    assert share[CitationLabel.ANOTHER_SOURCE] == 1.0
    assert share[CitationLabel.NOT_IN_SOURCE] >= 0.7


def _meet(span: Span, other: Span) -> bool:
    return span.start < other.end and other.start < span.end

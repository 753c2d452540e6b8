"""What analyses say in a sentence, with figures that are easy to check."""

from __future__ import annotations

from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span
from spanlab.scoring.annotators import analyses_with_data, compare_dataset
from spanlab.scoring.findings import (
    agreement_finding,
    claim_finding,
    progress_finding,
    score_finding,
)
from spanlab.storage import Store

ANSWER = "0123456789"


def says(name: str, kind: AnnotatorKind, end: int) -> Annotation:
    spans = (Span.of(ANSWER, 0, end),) if end else ()
    return Annotation(annotator=name, kind=kind, spans=spans)


def test_findings_name_the_closest_detector_and_the_agreement_of_people(store: Store) -> None:
    """`good` marks 4 of the 5 characters of gold, `bad` none: IoU .8 and 0."""
    gold, one, person = AnnotatorKind.GOLD, AnnotatorKind.DETECTOR, AnnotatorKind.PERSON
    annotations = (
        says("gold", gold, 5),
        says("bad", one, 0),
        says("good", one, 4),
        says("ann", person, 5),
        says("ben", person, 5),
    )
    record = Record(item=Item(id="a", answer=ANSWER), annotations=annotations)
    store.import_records("d", [record])
    comparison = compare_dataset(store, "d", reference="gold")
    finding = score_finding(comparison, ["good", "bad", "ann"])
    assert finding is not None
    assert finding.startswith("Of detectors, good is closest to gold: mean IoU .800 [")
    people = score_finding(comparison, ["ann"])
    assert people is not None
    assert people.startswith("Of annotators, ann is closest to gold")
    assert agreement_finding(comparison) == (
        "People agree on characters with Krippendorff's alpha 1.000 (1 is perfect, 0 is chance) "
        "on 1 item."
    )
    machines = [a for a in annotations if a.kind is one]
    store.import_records("m", [Record(item=record.item, annotations=(*machines,))])
    of_machines = compare_dataset(store, "m")
    told = agreement_finding(of_machines)
    assert told is not None
    assert told.startswith("Detectors agree")
    (table,) = of_machines.tables()
    assert [column.title for column in table.columns] == ["Agreement on", "Detectors", "Items"]
    assert [len(row) for row in table.rows] == [3] * len(table.rows)
    assert score_finding(comparison, []) is None
    assert claim_finding(comparison.claims, "gold") is None
    assert progress_finding(()) is None
    assert analyses_with_data(store, "d", {"some": lambda _: True, "none": lambda _: False}) == {
        "some"
    }

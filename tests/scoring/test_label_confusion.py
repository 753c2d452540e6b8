"""Labels of annotators against those of a reference, in characters: hand arithmetic."""

from __future__ import annotations

from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span
from spanlab.scoring.agreement import rated
from spanlab.scoring.calibration import UNLABELLED, UNMARKED, Confusion, ConfusionSums

ANSWER = "0123456789"
Mark = tuple[int, int, str | None]


def says(name: str, *marks: Mark, prob: float = 1.0) -> Annotation:
    spans = (Span.of(ANSWER, start, end, prob=prob, label=label) for start, end, label in marks)
    return Annotation(annotator=name, kind=AnnotatorKind.PERSON, spans=tuple(spans))


def confusion(*annotations: Annotation) -> dict[str, Confusion]:
    sums = ConfusionSums("gold")
    record = Record(item=Item(id="a", answer=ANSWER), annotations=annotations)
    sums.add(record, rated(record, [one.annotator for one in annotations]).marks)
    return dict(sums.result())


def test_characters_are_counted_by_both_labels() -> None:
    gold = says("gold", (0, 4, "name"), (6, 8, "date"))
    ann = says("Ann", (2, 6, "number"), (6, 7, "date"), (9, 10, None))
    assert confusion(gold, ann)["Ann"] == {
        ("name", UNMARKED): 2,
        ("name", "number"): 2,
        (UNMARKED, "number"): 2,
        ("date", "date"): 1,
        ("date", UNMARKED): 1,
        (UNMARKED, UNLABELLED): 1,
    }


def test_what_is_only_suggested_has_no_label_and_the_likeliest_counts() -> None:
    gold = says("gold", (0, 2, "name"))
    both = Annotation(
        annotator="Ann",
        kind=AnnotatorKind.DETECTOR,
        spans=(
            Span.of(ANSWER, 0, 2, prob=0.6, label="date"),
            Span.of(ANSWER, 0, 1, prob=0.9, label="name"),
            Span.of(ANSWER, 4, 6, prob=0.4, label="number"),
        ),
    )
    assert confusion(gold, both)["Ann"] == {("name", "name"): 1, ("name", "date"): 1}


def test_who_gives_no_labels_is_left_out() -> None:
    gold = says("gold", (0, 2, "name"))
    assert confusion(gold, says("Ann", (0, 2, None)), says("Ben")) == {}

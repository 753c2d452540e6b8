"""The head of a report: when it was made, of how much, and what all its items come to."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from io import BytesIO
from typing import Any

import pytest

from spanlab.data.export_choice import ExportChoice
from spanlab.data.exporting import export_dataset
from spanlab.measure.sample import plan_measurement
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Evidence,
    Item,
    MeasurementPlan,
    Passage,
    Record,
    Span,
    Status,
)
from spanlab.schema.record import Stance
from spanlab.storage import Store

ANSWER = "0123456789"


@pytest.fixture
def report(store: Store) -> Callable[..., str]:
    """Store records and return the text of their report, as it is read."""

    def write(*records: Record, **choice: Any) -> str:
        stream = BytesIO()
        store.import_records("d", records)
        export_dataset(store, "d", stream, ExportChoice(format="report", **choice))
        return _read(stream)

    return write


def _read(stream: BytesIO) -> str:
    text = re.sub("<style>.*?</style>", "", stream.getvalue().decode(), flags=re.DOTALL)
    return " ".join(unescape(re.sub("<[^>]*>", " ", text)).split())


def says(name: str, kind: AnnotatorKind, *marks: tuple[int, int], **more: object) -> Annotation:
    spans = tuple(Span.of(ANSWER, start, end, label="number") for start, end in marks)
    return Annotation.model_validate({"annotator": name, "kind": kind, "spans": spans, **more})


def record(name: str, model: str, *said: Annotation, lang: str = "en") -> Record:
    item = Item(
        id=name, lang=lang, question=name[:3].rstrip("ab"), answer=ANSWER, meta={"Model": model}
    )
    return Record(item=item, annotations=said)


def test_a_report_tells_date_counts_scores_agreement_labels_and_rates(
    report: Callable[..., str],
) -> None:
    """Model a: of 20 characters 4 are hallucinated, in one of two answers; model b: none."""
    gold, person, one = AnnotatorKind.GOLD, AnnotatorKind.PERSON, AnnotatorKind.DETECTOR
    both = says("ann", person, (0, 4)), says("ben", person, (0, 4))
    failed = says("one", one, status=Status.FAILED, note="no power")
    nothing = says("ann", person), says("ben", person)
    text = report(
        record("q1", "a", says("gold", gold, (0, 4)), says("one", one, (0, 2)), *both),
        record("q2", "a", says("gold", gold), says("one", one), *nothing),
        record("q3", "b", says("gold", gold), says("one", one), *nothing, lang="fr"),
        record("q4", "b", says("gold", gold), failed, lang="fr"),
    )
    assert re.search(r"Answers 4 \(en 2, fr 2\) .* Report made \d{4}-\d\d-\d\d \d\d:\d\d UTC", text)
    assert "Between 4 and 70 of 100 answers like these contain a hallucination." in text
    assert "Model b, a Hallucinated answers 25.0 % [4.6, 69.9]" in text
    assert "Reviewed by 2 people (ann 3, ben 3) Agreement of reviewers Krippendorff's" in text
    assert "The worst example" in text
    assert "q1 0123 456789 q1 · 40.0 % of the answer · marked by gold" in text
    assert "one 3 0 1 0" in text  # done, skipped, failed, not annotated
    assert "ann 3 0 0 1" in text
    # mean over languages of (½ + 1) / 2 and 1
    assert "one detector 3 .875 [" in text
    assert "mark nothing baseline 4 .750 [" in text
    assert text.index("one detector 3 .875") < text.index("ann person 3 1.000")
    assert "Krippendorff's alpha" in text
    assert "characters 1.000 3 " in text
    assert "Label Gold labels Detectors People number 1 1 2" in text
    assert "Hallucinations by Model according to gold, with 95 % intervals" in text
    # Two answers without a mark are no proof: Wilson's interval of 0 in 2 ends at 65.8 %.
    # Nor is no span in 20 characters: 3.67 spans of 20 are not excluded (Byar).
    assert "b 2 0.0 % [0.0, 65.8] 0.0 % [0.0, 65.8] 0.0 [0.0, 183" in text
    assert "a 2 20.0 % [0.0, 46.7] 50.0 % [" in text  # one answer more, marked whole
    assert "sampling error only" not in text


def test_where_gold_stands_alone_nothing_is_scored(report: Callable[..., str]) -> None:
    text = report(record("q1", "a", says("gold", AnnotatorKind.GOLD, (0, 4))))
    assert "mark everything" not in text
    assert "Scores" not in text
    assert "a 1 40.0 % 100.0 % 100.0 No interval: only one item" in text


def test_the_errors_of_a_detector_are_said_not_to_be_in_its_rates(
    report: Callable[..., str],
) -> None:
    text = report(
        *(record(f"q{n}", "a", says("one", AnnotatorKind.DETECTOR, (0, n))) for n in (1, 2))
    )
    assert "Marked by one by " in text
    assert "not the errors that “one” makes" in text


def test_figures_are_of_what_goes_into_the_report(report: Callable[..., str]) -> None:
    text = report(
        record(
            "q1", "a", says("gold", AnnotatorKind.GOLD), says("one", AnnotatorKind.DETECTOR, (0, 4))
        ),
        record("q2", "a", says("gold", AnnotatorKind.GOLD), lang="fr"),
        languages=("en",),
        annotators=("one",),
    )
    assert "Answers 1 (en 1)" in text
    assert "Marked by one" in text
    assert "gold" not in text


def test_adjudicated_labels_count_in_place_of_people_s_and_scores_are_against_them(
    report: Callable[..., str],
) -> None:
    """Imported gold labels say 4 of 10 characters; what the team decided says none."""
    decided = says("adjudicated", AnnotatorKind.GOLD, decided_by="lead")
    ann, known = AnnotatorKind.PERSON, AnnotatorKind.GOLD
    text = report(
        record("q1", "a", says("key", known, (0, 4)), decided, says("ann", ann, (0, 4))),
        record("q2", "a", says("ann", ann, (0, 5))),
    )
    assert "2 answers labelled by adjudicated, ann" in text
    assert "Hallucinated text 25.0 %" in text
    assert "Scores against adjudicated" in text
    assert "adjudicated by lead 1" in text


def test_a_report_tells_guidelines_evidence_and_the_measured_rate(store: Store) -> None:
    quote = Evidence(start=0, end=3, text="Its", passage=0, stance="refutes")
    people = (AnnotatorKind.PERSON, AnnotatorKind.DETECTOR)
    spans = (Span.of(ANSWER, 0, 4), Span.of(ANSWER, 0, 4, prob=0.8, evidence=(quote,)))
    said = tuple(
        Annotation(annotator=name, kind=kind, spans=(span,))
        for name, kind, span in zip(("ann", "one"), people, spans, strict=True)
    )
    item = Item(id="q", lang="en", answer=ANSWER, passages=(Passage(text="Its", title="Page"),))
    stream = BytesIO()
    store.import_records(
        "d",
        [Record(item=item.model_copy(update={"id": f"q{n}"}), annotations=said) for n in range(3)],
    )
    plan_measurement(store, "d", MeasurementPlan(annotator="one"))
    store.change_settings("d", lambda old: old.with_guidelines("Mark what is false."))
    export_dataset(store, "d", stream, ExportChoice(format="report"))
    text = _read(stream)
    assert "from 3 reviews of 3 items, with the marks of the detector one." in text
    assert "Guidelines (version 1) Mark what is false." in text
    assert "Evidence against it: Its ( Page )" in text
    assert "The 3 worst examples" in text


def test_the_worst_examples_begin_with_those_that_evidence_refutes(
    report: Callable[..., str],
) -> None:
    """A passage that is merely the closest is no evidence against an answer."""

    def judged(name: str, end: int, stance: Stance) -> Record:
        quote = Evidence(start=0, end=3, text="Its", passage=0, stance=stance)
        span = Span.of(ANSWER, 0, end, evidence=(quote,))
        item = Item(id=name, lang="en", answer=ANSWER, passages=(Passage(text="Its"),))
        ann = Annotation(annotator="ann", kind=AnnotatorKind.PERSON, spans=(span,))
        return Record(item=item, annotations=(ann,))

    text = report(judged("near", 9, "closest"), judged("refuted", 4, "refutes"))
    examples = text.partition("The 2 worst examples")[2]
    assert examples.index("refuted ·") < examples.index("near ·")


def test_who_hallucinates_more_is_said_under_the_title_of_a_report(
    report: Callable[..., str],
) -> None:
    ann = AnnotatorKind.PERSON
    text = report(
        *(
            record(f"q{n}{model}", model, says("ann", ann, *([(0, 4)] if model == "a" else [])))
            for n in range(20)
            for model in "ab"
        )
    )
    assert "“a” hallucinates more than “b”: with 95 % confidence, between " in text
    assert text.index("“a” hallucinates more") < text.index("Answers 40")


def test_a_report_tells_what_was_responded_to_questions(report: Callable[..., str]) -> None:
    said = says("ann", AnnotatorKind.PERSON, (0, 4), responses={"fluency": 4, "why": "<b>so</b>"})
    span = said.spans[0].model_copy(update={"attributes": {"severity": "major"}})
    text = report(record("q1", "a", said.model_copy(update={"spans": (span,)})))
    assert "fluency: 4 · why: <b>so</b>" in text
    assert "100.0 % · number · severity: major" in text

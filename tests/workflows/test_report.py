"""The head of a report: when it was made, of how much, and what all its items come to."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status
from spanlab.settings import Settings
from spanlab.storage import Store
from spanlab.workflows.export_choice import ExportChoice
from spanlab.workflows.exporting import export_dataset

ANSWER = "0123456789"


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., str]:
    """Store records and return the text of their report, as it is read."""

    def write(*records: Record, **choice: Any) -> str:
        stream = BytesIO()
        settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")
        with Store.open(settings) as store:
            store.import_records("d", records)
            export_dataset(store, "d", stream, ExportChoice(format="report", **choice))
        text = re.sub("<style>.*?</style>", "", stream.getvalue().decode(), flags=re.DOTALL)
        return " ".join(unescape(re.sub("<[^>]*>", " ", text)).split())

    return write


def says(name: str, kind: AnnotatorKind, *marks: tuple[int, int], **more: object) -> Annotation:
    spans = tuple(Span.of(ANSWER, start, end, label="number") for start, end in marks)
    return Annotation.model_validate({"annotator": name, "kind": kind, "spans": spans, **more})


def record(name: str, model: str, *said: Annotation, lang: str = "en") -> Record:
    item = Item(id=name, lang=lang, question=name, answer=ANSWER, meta={"Model": model})
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
    assert re.search(r"Made on \d{4}-\d\d-\d\d \d\d:\d\d UTC of 4 items \(en 2, fr 2\)\.", text)
    assert "one 3 0 1 0" in text  # done, skipped, failed, not annotated
    assert "ann 3 0 0 1" in text
    # mean over languages of (½ + 1) / 2 and 1
    assert "one detector 3 .875 [" in text
    assert "mark nothing baseline 4 .750 [" in text
    assert text.index("one detector 3 .875") < text.index("ann person 3 1.000")
    assert "Krippendorff's alpha" in text
    assert "characters 1.000 3 " in text
    assert "Label Gold labels Detectors People number 1 1 2" in text
    assert "Hallucinations by meta.Model according to gold, with 95 % intervals" in text
    # Two answers without a mark are no proof: Wilson's interval of 0 in 2 ends at 65.8 %.
    assert "b 2 0.0 % [0.0, 65.8] 0.0 % [0.0, 65.8] 0.0 [0.0, 0.7]" in text
    assert "a 2 20.0 % [0.0, 46.7] 50.0 % [" in text  # one answer more, marked whole
    assert "sampling alone" not in text


def test_where_gold_stands_alone_nothing_is_scored(report: Callable[..., str]) -> None:
    text = report(record("q1", "a", says("gold", AnnotatorKind.GOLD, (0, 4))))
    assert "mark everything" not in text
    assert "Scores" not in text
    assert "a 1 40.0 % 100.0 % 100.0 One item alone has no interval" in text


def test_the_errors_of_a_detector_are_said_not_to_be_in_its_rates(
    report: Callable[..., str],
) -> None:
    text = report(
        *(record(f"q{n}", "a", says("one", AnnotatorKind.DETECTOR, (0, n))) for n in (1, 2))
    )
    assert "Marked by one by " in text
    assert "the errors that “one” makes are not in them" in text


def test_figures_are_of_what_goes_into_the_report(report: Callable[..., str]) -> None:
    text = report(
        record(
            "q1", "a", says("gold", AnnotatorKind.GOLD), says("one", AnnotatorKind.DETECTOR, (0, 4))
        ),
        record("q2", "a", says("gold", AnnotatorKind.GOLD), lang="fr"),
        languages=("en",),
        annotators=("one",),
    )
    assert "of 1 item (en 1)" in text
    assert "Marked by one" in text
    assert "gold" not in text


def test_a_report_tells_what_was_responded_to_questions(report: Callable[..., str]) -> None:
    said = says("ann", AnnotatorKind.PERSON, (0, 4), responses={"fluency": 4, "why": "<b>so</b>"})
    span = said.spans[0].model_copy(update={"attributes": {"severity": "major"}})
    text = report(record("q1", "a", said.model_copy(update={"spans": (span,)})))
    assert "fluency: 4 · why: <b>so</b>" in text
    assert "100% · number · severity: major" in text

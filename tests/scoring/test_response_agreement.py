"""Agreement on what a dataset asks, with figures by hand, and as the command prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run_here

from spanlab.base.settings import Settings
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    Item,
    Question,
    Record,
    Response,
    Span,
)
from spanlab.scoring.raters import matched_spans, response_agreement
from spanlab.storage import Store

ANSWER = "abcdefghijklmnopqrst"
SETTINGS = {
    "attributes": (
        Question(name="severity", options=("minor", "major")),
        Question(name="elsewhere", options=("minor", "major"), labels=("another",)),
    ),
    "questions": (
        Question(name="fluency", title="Is it fluent?", kind="scale"),
        Question(name="remark", kind="text"),
    ),
}


def _says(name: str, *marks: tuple[int, int, str], **responses: Response) -> Annotation:
    spans = tuple(
        Span.of(ANSWER, start, end, label="other").model_copy(
            update={"attributes": {"severity": severity, "elsewhere": severity}}
        )
        for start, end, severity in marks
    )
    kind = AnnotatorKind.PERSON
    return Annotation(annotator=name, kind=kind, spans=spans, responses=responses)


def test_alpha_is_nominal_for_choices_and_ordinal_for_scales() -> None:
    # 2 of 4 units differ, and of 8 values 4 are "a".
    found = response_agreement([["a", "b"], ["a", "a"], ["b", "b"], ["b", "a"]])
    assert found.n == 4
    assert found.alpha == pytest.approx(1 - 0.5 / (2 * 4 * 4 / (8 * 7)))
    near = response_agreement([[1, 2], [5, 5], [3, 3]], ordinal=True).alpha
    far = response_agreement([[1, 5], [2, 2], [3, 3]], ordinal=True).alpha
    assert near is not None
    assert far is not None
    assert near > far
    assert response_agreement([["a", "a"], ["b"]]).alpha is None  # one value is all there is


def test_spans_of_one_label_that_overlap_are_the_same_the_longest_stands_for_several() -> None:
    other = _says("c", (0, 9, "x")).spans[0].model_copy(update={"label": "another"})
    said = [
        _says("a", (0, 4, "x"), (6, 7, "x"), (10, 12, "x")),
        _says("b", (3, 8, "y"), (12, 14, "y")),
        Annotation(annotator="c", kind=AnnotatorKind.PERSON, spans=(other,)),
    ]
    groups = [
        {name: (span.start, span.end) for name, span in group.items()}
        for group in matched_spans(said)
    ]
    assert groups == [
        {"c": (0, 9)},
        {"a": (0, 4), "b": (3, 8)},
        {"a": (10, 12)},
        {"b": (12, 14)},
    ]


def test_the_command_has_a_line_for_each_question_and_attribute(tmp_path: Path) -> None:
    records = [
        Record(
            item=Item(id=str(at), lang="en", answer=ANSWER),
            annotations=(
                _says("Ann", (0, 4, "minor"), fluency=at + 1, remark="good"),
                _says("Ben", (2, 6, ("minor", "major")[at % 2]), fluency=at + 1, remark="bad"),
            ),
        )
        for at in range(4)
    ]
    with Store.open(Settings(home=tmp_path)) as store:
        store.import_records("asked", records)
        store.change_settings(
            "asked", lambda now: DatasetSettings.model_validate({**dict(now), **SETTINGS})
        )
    environment = {"SPANLAB_HOME": str(tmp_path)}
    shown = run_here(["agreement", "asked"], tmp_path, environment).stdout
    lines = {line.split("  ")[0]: line.split()[-4:] for line in shown.splitlines()}
    assert lines["question: Is it fluent? (scale)"] == ["1.000", "4", "1.000", "4"]
    assert "question: remark (text)" not in lines
    assert "texts are left out" in shown
    assert "the longest is used" in shown
    printed = run_here(["agreement", "asked", "--json"], tmp_path, environment).stdout
    asked = json.loads(printed)["questions"]
    assert asked["fluency"]["people"] == {"n": 4, "alpha": 1.0}
    assert asked["severity"]["of"] == "spans"
    assert asked["elsewhere"]["people"]["n"] == 0  # it is not asked of their label (any more)
    # 2 of 4 spans differ, and 6 of 8 values are minor.
    expected = 1 - 0.5 / (2 * 6 * 2 / (8 * 7))
    assert asked["severity"]["people"]["alpha"] == pytest.approx(expected)

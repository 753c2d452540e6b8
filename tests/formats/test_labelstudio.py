"""Label Studio: its exports come in with the right characters, and ours go back into it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, detect, read
from spanlab.schema import AnnotatorKind, Passage, Status

TEXT = "👩🏻‍🚀 pilots steer moonrockets at dawn"


def region(start: int, end: int, text: str | None, **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = {"start": start, "end": end, "labels": ["Wrong"]}
    if text is not None:
        value["text"] = text
    return {
        "id": f"r{start}",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": {**value, **more.pop("value", {})},
        **more,
    }


def task(text: str, *regions: dict[str, Any], **more: Any) -> dict[str, Any]:
    annotation = {"id": 5, "completed_by": 1, "was_cancelled": False, "result": list(regions)}
    return {"id": 7, "data": {"text": text}, "annotations": [annotation], "predictions": [], **more}


def export(tmp_path: Path, *tasks: dict[str, Any]) -> Path:
    path = tmp_path / "project-1.json"
    path.write_text(json.dumps(tasks))
    return path


def first_spans(path: Path, **options: Any) -> list[tuple[int, int, str]]:
    record = next(read(path, ReadOptions(on_warning=lambda _: None, **options)))
    return [(span.start, span.end, span.text) for span in record.annotations[0].spans]


# The astronaut is 4 code points and 7 UTF-16 units (three astral characters), so
# "moonrockets" begins at 4 + 14 = 18 in code points and at 7 + 14 = 21 in UTF-16 units.
@pytest.mark.parametrize(
    ("start", "end"),
    [pytest.param(18, 29, id="code points"), pytest.param(21, 32, id="UTF-16 units")],
)
def test_offsets_after_emoji_are_told_by_the_quoted_text(
    tmp_path: Path, start: int, end: int
) -> None:
    """Both ways of counting lead to the characters that the label quotes."""
    assert TEXT[18:29] == "moonrockets"
    path = export(tmp_path, task(TEXT, region(start, end, "moonrockets")))
    assert detect(path) == "labelstudio"
    assert first_spans(path) == [(18, 29, "moonrockets")]


def test_what_fits_neither_way_of_counting_is_refused(tmp_path: Path) -> None:
    """A shifted label is refused by record and field, and not repaired by guessing."""
    path = export(
        tmp_path, task("plain", region(0, 2, "pl")), task(TEXT, region(19, 30, "moonrockets"))
    )
    with pytest.raises(InputError, match="counted in code points or in UTF-16 units") as caught:
        list(read(path))
    assert (caught.value.line, caught.value.field) == (2, "annotations.0.result.0.value")


def test_repeated_text_is_told_by_the_other_labels(tmp_path: Path) -> None:
    """A repeated word keeps its own place, whichever way offsets count."""
    text = "🎉 no no no yes"
    # In UTF-16 units the first "no" is at 3; read as code points that would be "o ".
    # The second "no" is at 6 in units and at 5 in code points. "aa" shows the ambiguous case:
    ambiguous = "🎉aaaa"
    files = [
        task(text, region(6, 8, "no"), region(12, 15, "yes")),
        task(ambiguous, region(3, 4, "a")),
    ]
    records = list(read(export(tmp_path, *files)))
    assert [(s.start, s.text) for s in records[0].annotations[0].spans] == [(5, "no"), (11, "yes")]
    # Unit 3 is the second "a", code point 3 the third; the rest of the file counts units.
    assert [(s.start, s.text) for s in records[1].annotations[0].spans] == [(2, "a")]


def test_without_any_evidence_offsets_are_code_points(tmp_path: Path) -> None:
    path = export(tmp_path, task("🎉aaaa", region(3, 4, "a"), region(1, 2, None)))
    assert first_spans(path) == [(3, 4, "a"), (1, 2, "a")]


def test_line_ends_may_be_quoted_as_browsers_do(tmp_path: Path) -> None:
    """CRLF counts as two characters, however the quote writes it."""
    text = "one\r\ntwo three"
    for quoted in ("one\r\ntwo", "one\ntwo", "one\\ntwo", "one\\n\\ntwo"):
        assert first_spans(export(tmp_path, task(text, region(0, 8, quoted)))) == [
            (0, 8, "one\r\ntwo")
        ]


def test_right_to_left_text_keeps_its_offsets(tmp_path: Path) -> None:
    """Offsets follow the logical order, not the order on screen."""
    text = "ولدت Ada في 1815 في لندن"
    start = text.index("1815")
    assert first_spans(export(tmp_path, task(text, region(start, start + 4, "1815")))) == [
        (start, start + 4, "1815")
    ]


def test_people_models_states_and_scores(tmp_path: Path) -> None:
    """Suggestions and everybody's work stay apart."""
    text = "Oslo has 3 million people."
    number = region(9, 18, "3 million", score=0.25)
    path = export(
        tmp_path,
        {
            "id": 12,
            "data": {"text": text, "question": "How large?", "context": "700,000", "rank": 2},
            "annotations": [
                {"completed_by": {"id": 1, "email": "eva@x.org"}, "result": [number]},
                {"completed_by": {"id": 2, "first_name": "Tom", "last_name": "B"}, "result": []},
                {"completed_by": 3, "was_cancelled": True, "result": []},
                {"completed_by": 3, "result": [region(0, 4, "Oslo", meta={"text": ["sure?"]})]},
                {"result": []},
            ],
            "predictions": [
                {"model_version": "m1", "score": 0.5, "result": [number, region(0, 4, "Oslo")]},
                {"model_version": "m2", "result": []},
                {"result": [region(0, 4, "Oslo")]},
            ],
            "meta": {"batch": 1},
        },
    )
    with pytest.warns(UserWarning, match="an annotator who has one there, kept .* own: 3 2"):
        (record,) = read(path)
    assert record.item.id == "task-12"
    assert record.item.question == "How large?"
    assert record.item.passages == (Passage(text="700,000"),)
    assert record.item.meta == {"rank": 2, "task": {"id": 12, "meta": {"batch": 1}}}
    assert [
        (a.annotator, a.kind, a.status, [(s.text, s.prob, s.note) for s in a.spans])
        for a in record.annotations
    ] == [
        # Taken over from a prediction, it is still the person's own mark.
        ("eva@x.org", AnnotatorKind.PERSON, Status.DONE, [("3 million", 1.0, None)]),
        ("Tom B", AnnotatorKind.PERSON, Status.DONE, []),
        ("3", AnnotatorKind.PERSON, Status.SKIPPED, []),
        ("3 2", AnnotatorKind.PERSON, Status.DONE, [("Oslo", 1.0, "sure?")]),
        ("annotator", AnnotatorKind.PERSON, Status.DONE, []),
        (
            "m1",
            AnnotatorKind.DETECTOR,
            Status.DONE,
            [("3 million", 0.25, None), ("Oslo", 0.5, None)],
        ),
        ("m2", AnnotatorKind.DETECTOR, Status.DONE, []),
        ("prediction", AnnotatorKind.DETECTOR, Status.DONE, [("Oslo", 1.0, None)]),
    ]


def test_several_labels_on_one_region_are_several_spans(tmp_path: Path) -> None:
    path = export(tmp_path, task("abc", region(0, 2, "ab", value={"labels": ["A", "B"]})))
    (record,) = read(path)
    assert [(s.text, s.label) for s in record.annotations[0].spans] == [("ab", "A"), ("ab", "B")]


def test_what_marks_no_span_is_left_out_and_said(tmp_path: Path) -> None:
    choice = {"type": "choices", "to_name": "text", "value": {"choices": ["bad"]}}
    area = {"type": "textarea", "to_name": "text", "value": {"text": ["why"]}}
    relation = {"type": "relation", "from_id": "a", "to_id": "b"}
    said: list[str] = []
    path = export(tmp_path, task("abc", choice, region(0, 1, "a"), area, choice, relation))
    (record,) = read(path, ReadOptions(on_warning=said.append))
    assert len(record.annotations[0].spans) == 1
    assert said == [f"{path}: left out what marks no span: 2 choices, 1 relation, 1 textarea"]


@pytest.mark.parametrize(
    ("data", "to_name", "columns", "answer"),
    [
        pytest.param({"body": "abc"}, "t", None, "abc", id="the only text"),
        pytest.param({"text": "abc", "x": "abd"}, "text", None, "abc", id="the text of that name"),
        pytest.param({"p": "zzz", "q": "abc"}, "t", None, "abc", id="the text with the quotes"),
        pytest.param({"p": "abz", "response": "abc"}, "t", None, "abc", id="a common name"),
        pytest.param({"p": "abz", "q": "abc"}, "t", {"answer": "q"}, "abc", id="as mapped"),
    ],
)
def test_the_labelled_text_is_found(
    tmp_path: Path, data: dict[str, str], to_name: str, columns: dict[str, str] | None, answer: str
) -> None:
    path = export(tmp_path, {**task("", region(0, 2, "ab", to_name=to_name)), "data": data})
    (record,) = read(path, ReadOptions(columns=columns))
    assert record.item.answer == answer


def test_labels_of_another_text_are_left_out(tmp_path: Path) -> None:
    regions = [region(0, 2, "ab", to_name="answer"), region(0, 1, "w", to_name="question")]
    said: list[str] = []
    path = export(tmp_path, {**task("", *regions), "data": {"answer": "abc", "question": "why"}})
    (record,) = read(path, ReadOptions(on_warning=said.append))
    assert [span.text for span in record.annotations[0].spans] == ["ab"]
    assert said[0].endswith("left out what marks no span: 1 labels of question")


def test_an_unclear_text_is_an_error_that_lists_the_fields(tmp_path: Path) -> None:
    path = export(
        tmp_path, {**task("", region(0, 2, "ab", to_name="t")), "data": {"p": "abz", "q": "abc"}}
    )
    with pytest.raises(
        InputError, match=r"which text was labelled.*answer=FIELD|which text was labelled.*'p', 'q'"
    ):
        list(read(path))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"data": {"text": 5}}, "data.text", id="no text"),
        pytest.param({"data": "abc"}, "data", id="no data"),
        pytest.param(
            {"predictions": [{"score": 700, "result": []}]},
            "predictions.0.score",
            id="a score of 700",
        ),
    ],
)
def test_a_wrong_task_is_named(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    path = export(tmp_path, task("abc", region(0, 1, "a")), {**task("abc"), **change})
    with pytest.raises(InputError) as caught:
        list(read(path))
    assert (caught.value.line, caught.value.field) == (2, field)


def test_a_short_export_keeps_who_annotated(tmp_path: Path) -> None:
    path = tmp_path / "min.json"
    labels = [{"start": 1, "end": 3, "text": "bc", "labels": ["wrong"]}]
    shared = {"id": 5, "text": "abcd", "annotation_id": 2}
    rows = [
        {**shared, "annotator": 1, "label": labels, "fluency": [{"rating": 4}], "tone": "dry"},
        {**shared, "annotator": "bo@example.org", "tone": "warm"},
    ]
    path.write_text(json.dumps(rows))
    assert detect(path) == "labelstudio"
    (record,) = read(path)
    assert [(a.annotator, a.kind.value, a.responses) for a in record.annotations] == [
        ("1", "person", {"fluency": 4, "tone": "dry"}),
        ("bo@example.org", "person", {"tone": "warm"}),
    ]
    assert [(s.start, s.end, s.label) for s in record.annotations[0].spans] == [(1, 3, "wrong")]


def test_what_an_export_leaves_open_is_said(tmp_path: Path) -> None:
    remarks: list[str] = []
    prediction = {"score": 87.5, "result": [region(0, 3, "abc")]}
    path = export(tmp_path, {**task("abc", region(0, 4, "abc")), "predictions": [prediction, 286]})
    (record,) = read(path, ReadOptions(on_warning=remarks.append))
    assert [span.end for a in record.annotations for span in a.spans] == [3, 3]
    assert record.annotations[1].spans[0].prob == 0.875
    told = " ".join(remarks)
    assert "1 region ended one character past the text" in told
    assert (
        "read as percent" in told and "1 annotations or predictions that are only numbers" in told
    )

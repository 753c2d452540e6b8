"""Who marked what in files of annotation tools, and what is said where it changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, read
from spanlab.schema import Record

ANSWER = "The tower was built in 1925."
YEAR = {"start": 23, "end": 27, "label": "Hallucination", "text": "1925"}
TOWER = {"start": 4, "end": 9, "label": "Hallucination", "text": "tower"}


def _read(folder: Path, *rows: Any, name: str = "rows.jsonl") -> tuple[list[Record], str]:
    """Return the records, and what was remarked."""
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    remarks: list[str] = []
    return list(read(folder / name, ReadOptions(on_warning=remarks.append))), "\n".join(remarks)


def _marks(record: Record) -> dict[str, list[str]]:
    return {one.annotator: [span.text for span in one.spans] for one in record.annotations}


def _region() -> dict[str, Any]:
    value = {"start": 23, "end": 27, "labels": ["wrong"], "text": "1925"}
    return {"from_name": "l", "to_name": "answer", "type": "labels", "value": value}


def test_a_second_annotation_and_a_ground_truth_are_said(tmp_path: Path) -> None:
    said = [
        {"completed_by": 1, "result": [_region()]},
        {"completed_by": 1, "result": []},
        {"completed_by": 2, "ground_truth": True, "result": []},
    ]
    records, remarks = _read(tmp_path, {"id": 1, "data": {"answer": ANSWER}, "annotations": said})
    assert _marks(records[0]) == {"1": ["1925"], "1 2": [], "gold": []}
    assert "1 annotation of tasks by an annotator who has one there" in remarks
    assert "names of their own: 1 2" in remarks
    assert "1 annotation marked as ground truth became gold labels" in remarks


def test_one_annotation_a_person_is_nothing_to_remark(tmp_path: Path) -> None:
    said = [{"completed_by": n, "result": [_region()]} for n in (1, 2)]
    records, remarks = _read(tmp_path, {"id": 1, "data": {"answer": ANSWER}, "annotations": said})
    assert _marks(records[0]) == {"1": ["1925"], "2": ["1925"]}
    assert not remarks


def test_a_line_that_replaces_another_of_the_same_annotator_is_said(tmp_path: Path) -> None:
    line = {"text": ANSWER, "answer": "accept", "_input_hash": 1, "_annotator_id": "ana"}
    records, remarks = _read(
        tmp_path,
        {**line, "spans": [YEAR], "_task_hash": 1},
        {**line, "spans": [TOWER], "_task_hash": 2},
        {**line, "spans": [], "_task_hash": 3, "_annotator_id": "bo"},
    )
    assert _marks(records[0]) == {"ana": ["tower"], "bo": []}
    assert "1 line repeated a text for the same annotator" in remarks


def _of_potato(name: str, user: str, mark: Any) -> dict[str, Any]:
    return {"instance_id": name, "user_id": user, "text": ANSWER, "spans": {"halu": [mark]}}


def test_users_of_potato_are_the_people_and_its_instances_the_items(tmp_path: Path) -> None:
    people = [("q1", "ana", YEAR), ("q2", "ana", TOWER), ("q1", "bo", TOWER), ("q2", "bo", YEAR)]
    records, remarks = _read(tmp_path, *(_of_potato(*said) for said in people))
    assert {record.item.id: _marks(record) for record in records} == {
        "q1": {"ana": ["1925"], "bo": ["tower"]},
        "q2": {"ana": ["tower"], "bo": ["1925"]},
    }
    assert "4 rows, each an annotator's judgement, became 2 items" in remarks


def test_users_who_asked_are_no_annotators(tmp_path: Path) -> None:
    rows = ({"id": u, "user_id": u, "question": u, "answer": ANSWER, "spans": [YEAR]} for u in "ab")
    records, _ = _read(tmp_path, *rows)
    assert [_marks(record) for record in records] == [{"gold": ["1925"]}] * 2
    assert records[0].item.meta == {"user_id": "a"}


def test_marks_under_several_names_are_each_ones(tmp_path: Path) -> None:
    rows = {"id": "q1", "text": ANSWER, "spans": {"ana": [YEAR], "bo": [TOWER]}}
    records, remarks = _read(tmp_path, rows)
    assert [a.annotator for a in records[0].annotations] == ["ana", "bo"]
    assert "marks of several annotators: 'spans.ana' of 'ana', 'spans.bo' of 'bo'" in remarks


def test_a_column_of_one_of_them_without_marks_is_said(tmp_path: Path) -> None:
    rows = {"id": "q1", "text": ANSWER, "spans_ana": [YEAR], "spans_bo": [], "spans_eve": "later"}
    records, remarks = _read(tmp_path, {**rows, "span_count": 1})
    assert _marks(records[0]) == {"ana": ["1925"], "bo": []}
    assert records[0].item.meta == {"spans_eve": "later", "span_count": 1}
    assert "no places or texts of the answers, kept in meta: 'spans_eve'" in remarks
    assert "span_count" not in remarks


def test_verdicts_beside_marks_in_columns_are_read_with_them(tmp_path: Path) -> None:
    rows = {"id": "q1", "text": ANSWER, "spans_gpt4": [YEAR], "spans_bo": [], "hallucinated": True}
    records, _ = _read(tmp_path, rows)
    assert _marks(records[0]) == {"gpt4": ["1925"], "bo": [], "gold": []}
    assert [a.kind.value for a in records[0].annotations] == ["detector", "person", "gold"]
    assert records[0].by("gold").answer_hallucinated  # type: ignore[union-attr]  # seen above


def test_a_detector_that_found_nothing_has_annotated(tmp_path: Path) -> None:
    rows = [{"id": i, "answer": ANSWER, "predictions": p} for i, p in (("a", [YEAR]), ("b", []))]
    records, _ = _read(tmp_path, *rows)
    assert [_marks(record) for record in records] == [
        {"predictions": ["1925"]},
        {"predictions": []},
    ]
    assert _marks(_read(tmp_path, rows[1])[0][0]) == {"predictions": []}


def test_marks_under_several_names_that_are_not_understood_are_kept_and_said(
    tmp_path: Path,
) -> None:
    rows = {"id": "q1", "text": ANSWER, "spans": {"ana": [YEAR], "bo": [{"at": 3}]}}
    records, remarks = _read(tmp_path, rows)
    assert not records[0].annotations and records[0].item.meta == {"spans": rows["spans"]}
    assert "--column spans=spans.NAME reads one" in remarks


def test_marks_without_their_answer_are_refused(tmp_path: Path) -> None:
    (tmp_path / "spans.csv").write_text(
        "instance_id,user_id,start,end,label,text\nq1,ana,23,27,Hallucination,1925\n"
        "q2,bo,4,9,Hallucination,tower\n"
    )
    with pytest.raises(InputError, match="marked places without the answers that they are in"):
        list(read(tmp_path / "spans.csv"))


@pytest.mark.parametrize("right", [(True, False), (0, 1)])
def test_judgements_deep_in_lists_are_remarked(tmp_path: Path, right: tuple[Any, Any]) -> None:
    claims = [{"claim": "A.", "label": right[0]}, {"claim": "B.", "label": right[1]}]
    rows = {"prompt": "q", "response": ANSWER, "sentences": [{"claims": claims}]}
    records, remarks = _read(tmp_path, rows)
    assert not records[0].annotations
    assert "'sentences.claims.label' may judge answers, and is kept in meta" in remarks


def test_the_name_of_feedback_that_was_read_is_no_verdict_of_its_own(tmp_path: Path) -> None:
    given = [{"key": "hallucination", "score": 1}]
    records, remarks = _read(tmp_path, {"question": "q", "answer": ANSWER, "feedback": given})
    assert records[0].annotations[0].answer_hallucinated is True
    assert "may judge" not in remarks


def test_explanations_never_judge(tmp_path: Path) -> None:
    rows = {"question": "q", "answer": ANSWER, "score_accuracy": 0, "explanation_accuracy": "wrong"}
    records, remarks = _read(tmp_path, rows)
    assert [one.annotator for one in records[0].annotations] == ["gold"]
    assert "explanation_accuracy" not in remarks


def test_letters_are_question_and_answer_where_both_are_there(tmp_path: Path) -> None:
    asked = {"q": "When?", "a": ANSWER, "retrieved_contents": ["Built in 1889."]}
    records, _ = _read(tmp_path, asked)
    assert (records[0].item.question, records[0].item.answer) == ("When?", ANSWER)
    assert records[0].item.passages[0].text == "Built in 1889."
    with pytest.raises(InputError, match="no column for answer"):
        _read(tmp_path, {"q": "Which?", "a": "one", "b": "two"})


def test_generated_texts_are_answers(tmp_path: Path) -> None:
    rows = {"qid": "7", "query": "When?", "generation_gt": ["1889"], "generated_texts": ANSWER}
    records, _ = _read(tmp_path, rows)
    assert (records[0].item.id, records[0].item.answer) == ("7", ANSWER)

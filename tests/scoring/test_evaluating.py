"""What is wrong with scored files is said with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import dumps
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status
from spanlab.scoring.files import score_files


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def gold(name: str, answer: str | None = "abcdef") -> dict[str, Any]:
    labels = {"id": name, "soft_labels": [], "hard_labels": [[0, 2]]}
    return labels if answer is None else {**labels, "model_output_text": answer}


def predicted(name: str, *marks: list[int]) -> dict[str, Any]:
    return {"id": name, "hard_labels": list(marks)}


def test_a_prediction_that_reaches_past_its_answer_is_named_by_file_and_line(
    tmp_path: Path,
) -> None:
    golds = lines(tmp_path / "gold.jsonl", gold("a"), gold("b"), gold("c"))
    pred = lines(tmp_path / "pred.jsonl", predicted("c", [0, 2]), predicted("b", [1, 2], [4, 9]))
    with pytest.raises(InputError) as caught:
        score_files([pred], [golds])
    error = caught.value
    assert (error.file, error.line, error.found) == (str(pred), 2, 9)
    assert str(error).startswith(
        f"{pred}, line 2, soft_labels: item 'b': predicted labels end at 9"
    )
    assert "expected at most 6, the answer's length in characters, found 9" in str(error)


def test_gold_labels_without_their_answer_are_named_by_file_and_line(tmp_path: Path) -> None:
    golds = lines(tmp_path / "gold.jsonl", gold("a"), gold("b", answer=None))
    pred = lines(tmp_path / "pred.jsonl", predicted("a"), predicted("b"))
    with pytest.raises(
        InputError, match=r"gold.jsonl, line 2: item 'b': neither gold nor prediction"
    ):
        score_files([pred], [golds])


def test_an_id_that_stands_twice_is_named_by_file_and_line(tmp_path: Path) -> None:
    golds = lines(tmp_path / "gold.jsonl", gold("a"))
    pred = lines(tmp_path / "pred.jsonl", predicted("a"), predicted("x"), predicted("a"))
    with pytest.raises(
        InputError, match=r"pred.jsonl, line 3, id: an item with this id already exists"
    ):
        score_files([pred], [golds])


def test_a_record_of_a_json_array_is_named_by_its_number(tmp_path: Path) -> None:
    golds = lines(tmp_path / "gold.jsonl", gold("a"))
    pred = tmp_path / "pred.json"
    pred.write_text(json.dumps([predicted("x"), predicted("a", [5, 7])]))
    with pytest.raises(InputError) as caught:
        score_files([pred], [golds])
    assert str(caught.value).startswith(
        f"{pred}, record 2, soft_labels: item 'a': predicted labels end at 7"
    )


@pytest.mark.parametrize("annotator", [None, "judge"])
def test_items_that_were_skipped_or_failed_do_not_lack_a_prediction(
    tmp_path: Path, annotator: str | None
) -> None:
    said: dict[str, Any] = {"annotator": "judge", "kind": AnnotatorKind.DETECTOR}
    states: list[tuple[Annotation, ...]] = [
        (Annotation(**said),),
        (Annotation(**said, status=Status.SKIPPED),),
        (Annotation(**said, status=Status.FAILED, note="no reply"),),
        (),
        # What nobody has predicted is missing, also where its gold labels are no finished ones.
        (Annotation(annotator="gold", kind=AnnotatorKind.GOLD, status=Status.SKIPPED),),
    ]
    records = [
        Record(item=Item(id=name, answer="abcdef"), annotations=annotations)
        for name, annotations in zip("abcdf", states, strict=True)
    ]
    pred = tmp_path / "pred.jsonl"
    pred.write_bytes(b"".join(map(dumps, records)))
    golds = lines(tmp_path / "gold.jsonl", *(gold(name) for name in "abcdef"))
    scored = score_files([pred], [golds], annotator=annotator)
    assert scored.unfinished == ("b", "c")
    assert scored.missing == ("d", "e", "f")
    told = scored.tables()[0].remarks
    assert "3 gold items without a prediction: not scored: d, e, f" in told
    assert (
        "2 gold items whose prediction was set aside, skipped or failed: not scored: b, c" in told
    )

"""Several wrongs of files are told together: a line for each kind, with one example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spanlab
from spanlab.base.errors import InputError
from spanlab.data.import_preview import preview_import
from spanlab.data.importing import ImportOptions, import_files
from spanlab.data.joining import join_annotations
from spanlab.data.predictions import import_predictions
from spanlab.scoring.files import score_files
from spanlab.storage import Store

MARKED = {"annotator": "x", "kind": "person", "status": "done", "spans": [{"start": 0, "end": 99}]}
RIGHT: dict[str, Any] = {"id": "a", "question": "When?", "answer": "In 1889."}
ROWS: list[dict[str, Any]] = [
    RIGHT,
    {"id": "b", "question": "When?"},
    {**RIGHT, "id": "c", "annotations": [MARKED]},
    {"id": "d", "question": "When?"},
    {**RIGHT, "id": "e"},
]
TOLD = [
    "bad.jsonl, line 2, answer: the field is missing; found \"the fields 'id', 'question'\"; "
    "2 records like this",
    "bad.jsonl, line 3, annotations.0.spans.0.text: the field is missing",
    "3 of 5 records are wrong; --skip-bad leaves them out",
]
IN_PYTHON = [*TOLD[:2], "3 of 5 records are wrong"]  # which has no such option


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def told(error: InputError, folder: Path) -> list[str]:
    lines = str(error).replace(f"{folder}/", "").splitlines()
    return [line.partition("; found \"the fields 'start'")[0] for line in lines]


@pytest.mark.parametrize("door", ["import", "preview", "join", "load"])
def test_each_kind_is_told_once_with_how_many_there_are(
    tmp_path: Path, store: Store, door: str
) -> None:
    bad = written(tmp_path / "bad.jsonl", *ROWS)
    with pytest.raises(InputError) as wrong:
        if door == "import":
            import_files(store, [bad], "mine")
        elif door == "preview":
            preview_import([bad])
        elif door == "join":
            import_files(store, [written(tmp_path / "good.jsonl", RIGHT)], "mine")
            join_annotations(store, [bad], "mine")
        else:
            spanlab.load(bad)
    assert told(wrong.value, tmp_path) == (IN_PYTHON if door == "load" else TOLD)
    assert (wrong.value.line, wrong.value.field, wrong.value.count) == (2, "answer", 2)


PLACES: dict[str, Any] = {"soft_labels": [], "hard_labels": []}
SUBMITTED: list[dict[str, Any]] = [
    {"id": "a", **PLACES},
    {"id": "b"},
    {"id": "c", **PLACES, "hard_labels": [[9, 3]]},
    {"id": "d"},
    {"id": "a", **PLACES},
]
SUBMISSION = [
    "bad.jsonl, line 2: there are no labels; expected soft_labels and hard_labels; "
    "2 records like this",
    "bad.jsonl, line 3, hard_labels.0: the offsets are not a part of the answer; "
    "expected start <= end, found [9, 3]",
    "bad.jsonl, line 5, id: an item with this id already exists; "
    "expected every id once over all files, found 'a'",
    "4 records are wrong",
]


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        pytest.param(ROWS, [*TOLD[:2], "3 records are wrong"], id="whole annotations"),
        pytest.param(SUBMITTED, SUBMISSION, id="submission"),
    ],
)
@pytest.mark.parametrize("door", ["score", "as"])
def test_predictions_are_told_of_as_items_are(
    tmp_path: Path, store: Store, door: str, rows: list[dict[str, Any]], lines: list[str]
) -> None:
    bad = written(tmp_path / "bad.jsonl", *rows)
    import_files(store, [written(tmp_path / "good.jsonl", RIGHT)], "mine")
    with pytest.raises(InputError) as wrong:
        if door == "score":
            score_files([bad], [written(tmp_path / "gold.jsonl", SUBMITTED[0])])
        else:
            import_predictions(store, [bad], "mine", "theirs")
    assert [line.replace(" of one side", "") for line in told(wrong.value, tmp_path)] == lines


def test_predictions_for_other_answers_are_told_together(tmp_path: Path, store: Store) -> None:
    good = written(tmp_path / "good.jsonl", RIGHT, {**RIGHT, "id": "b"})
    import_files(store, [good], "mine")
    far = {"soft_labels": [], "hard_labels": [[0, 99]]}
    bad = written(tmp_path / "bad.jsonl", {"id": "a", **far}, {"id": "b", **far})
    with pytest.raises(
        InputError,
        match=r"(?s)bad\.jsonl, line 1, soft_labels: .* 2 records like this.*2 records are",
    ):
        import_predictions(store, [bad], "mine", "theirs")


@pytest.mark.parametrize("door", ["import", "preview"])
def test_ids_that_occur_twice_are_told_with_what_else_is_wrong(
    tmp_path: Path, store: Store, door: str
) -> None:
    first = written(tmp_path / "first.jsonl", RIGHT, RIGHT)
    second = written(tmp_path / "second.jsonl", ROWS[1], RIGHT)
    with pytest.raises(InputError, match=r"3 of 4 records are wrong") as wrong:
        if door == "import":
            import_files(store, [first, second], "mine")
        else:
            preview_import([first, second])
    kinds = str(wrong.value).splitlines()[:-1]
    assert sorted("item with this id already exists" in line for line in kinds) == [False, True]
    assert sum("2 records like this" in line for line in kinds) == 1
    numbered = ImportOptions(same_ids="number")
    with pytest.raises(InputError) as alone:
        import_files(store, [first, second], "mine", numbered)
    assert "item with this id already exists" not in str(alone.value)


def test_a_file_that_is_imported_again_is_refused_and_another_models_answers_are_not(
    tmp_path: Path, store: Store
) -> None:
    """With the model's name behind the ids it would double the dataset."""
    of_model = [{**RIGHT, "model": "m1"}, {**RIGHT, "id": "b", "model": "m1"}]
    file = written(tmp_path / "one.jsonl", *of_model)
    import_files(store, [file], "mine")
    with pytest.raises(InputError, match="item with this id already exists"):
        import_files(store, [file], "mine")
    other = [{**row, "model": "m2"} for row in of_model]
    import_files(store, [written(tmp_path / "two.jsonl", *other)], "mine")
    ids = [record.item.id for record in store.records("mine")]
    assert ids == ["a", "b", "a-m2", "b-m2"]
    assert import_files(store, [file], "mine", ImportOptions(same_ids="number")).items == 2


def test_rows_in_memory_are_told_of_as_files_are() -> None:
    with pytest.raises(InputError) as wrong:
        spanlab.load(ROWS)
    lines = str(wrong.value).splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == [
        "rows, row 2, answer",
        "rows, row 3, annotations.0.spans.0.text",
    ]
    assert lines[2] == IN_PYTHON[2]


def test_one_wrong_record_is_told_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(InputError) as wrong:
        spanlab.load(written(tmp_path / "bad.jsonl", *ROWS[:2]))
    assert told(wrong.value, tmp_path) == [TOLD[0].removesuffix("; 2 records like this")]


def test_calls_that_failed_are_not_wrong(tmp_path: Path) -> None:
    failed: dict[str, Any] = {"question": "When?", "output": None, "error": "429"}
    rows = [{"question": "When?", "output": "In 1889."}, failed, {"question": "Who?", "output": ""}]
    with pytest.raises(InputError) as wrong:
        spanlab.load(written(tmp_path / "bad.jsonl", *rows, failed))
    assert wrong.value.others == ()
    assert wrong.value.line == 3

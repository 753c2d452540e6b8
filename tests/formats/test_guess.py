"""What columns mean is guessed from names and values; two that would do are asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, read, recipe_of
from spanlab.formats.guess import guess

SAID, OTHER = "It was built in 1901.", "It was built in 1889."


def _file(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_two_columns_that_may_be_the_answer_are_asked_about(tmp_path: Path) -> None:
    path = _file(tmp_path, {"question": "When?", "model_answer": SAID, "system_response": OTHER})
    with pytest.raises(InputError, match="two columns may be the answer") as refused:
        list(read(path))
    assert "--column 'answer=model_answer'" in str(refused.value)
    assert "'system_response'" in str(refused.value)
    (record,) = read(path, ReadOptions(columns={"answer": "system_response"}))
    assert record.item.answer == OTHER


def test_columns_that_hold_the_same_are_not_asked_about(tmp_path: Path) -> None:
    (record,) = read(_file(tmp_path, {"model_answer": SAID, "system_response": SAID}))
    assert record.item.answer == SAID


def test_the_name_of_a_column_counts_before_what_fits_better() -> None:
    rows: list[dict[str, Any]] = [{"response": SAID, "output": SAID}] * 2
    rows.append({"response": {"a": 1}, "output": SAID})
    assert guess(("output", "response"), rows)["answer"] == "response"
    assert guess(("output", "response"), rows[2:])["answer"] == "output"


def test_of_names_that_count_the_same_the_one_that_fits_better_is_taken() -> None:
    rows: list[dict[str, Any]] = [{"model_answer": SAID, "system_response": OTHER}] * 2
    rows.append({"model_answer": {"a": 1}, "system_response": OTHER})
    found = guess(tuple(rows[0]), rows)
    assert (found["answer"], found.close) == ("system_response", {})


def test_passages_that_are_not_read_are_told(tmp_path: Path) -> None:
    row = {"answer": SAID, "retrieved_contexts": [OTHER], "source_documents": ["It is red."]}
    told: list[str] = []
    (record,) = read(_file(tmp_path, row), ReadOptions(on_warning=told.append))
    assert [passage.text for passage in record.item.passages] == [OTHER]
    assert "'source_documents' may be passages as well as 'retrieved_contexts'" in told[0]
    assert record.item.meta == {"source_documents": ["It is red."]}


def test_why_a_column_was_chosen_is_in_the_recipe(tmp_path: Path) -> None:
    path = _file(tmp_path, {"instruction": "When?", "input": OTHER, "output": SAID})
    assert 'passages = "input"  # beside instruction\n' in recipe_of(path)

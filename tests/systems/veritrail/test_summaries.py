"""Hierarchical summaries in BooookScore's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, detect, read
from spanlab.schema import Process

BOOK: dict[str, Any] = {
    "book": "The Tower",
    "chunks": ["Ada came.", "She built.", "She left."],
    "summaries_dict": {"0": ["Ada came", "Ada built", "Ada left"], "1": ["Begin", "End"]},
    "final_summary": "Ada came, built and left.",
}


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def process_of(path: Path, options: ReadOptions | None = None) -> Process:
    (record,) = read(path, options)
    assert isinstance(record.item.process, Process)
    assert record.item.answer == record.item.process.terminal.text
    return record.item.process


def test_a_book_becomes_its_final_summary_with_all_that_led_to_it(tmp_path: Path) -> None:
    path = written(tmp_path / "books.json", BOOK)
    assert detect(path) == "summaries"
    process = process_of(path)
    assert {node.id: node.sources for node in process.nodes} == {
        "chunk 1": (),
        "chunk 2": (),
        "chunk 3": (),
        "summary 0.1": ("chunk 1",),
        "summary 0.2": ("chunk 2",),
        "summary 0.3": ("chunk 3",),
        "summary 1.1": ("summary 0.1", "summary 0.2", "summary 0.3"),
        "summary 1.2": ("summary 0.1", "summary 0.2", "summary 0.3"),
        "final summary": ("summary 1.1", "summary 1.2"),
    }
    assert process.stages == (
        "chunk",
        "summary of level 0",
        "summary of level 1",
        "final summary",
    )


def test_a_file_may_hold_several_books_by_name(tmp_path: Path) -> None:
    unnamed = {key: value for key, value in BOOK.items() if key != "book"}
    path = written(tmp_path / "books.json", {"One": unnamed, "Two": unnamed})
    assert detect(path) == "summaries"
    assert [record.item.id for record in read(path)] == ["One", "Two"]


def test_without_chunks_the_first_summaries_stand_for_the_source(tmp_path: Path) -> None:
    said: list[str] = []
    path = written(tmp_path / "books.json", {**BOOK, "chunks": []})
    assert process_of(path, ReadOptions(on_warning=said.append)).stages[0] == "summary of level 0"
    assert len(said) == 1
    assert "without the chunks of 1" in said[0]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a level missing": (
        {"summaries_dict": {"0": ["a"], "2": ["b"]}, "chunks": []},
        "summaries_dict.1: this level is missing or empty",
    ),
    "a level empty": (
        {"summaries_dict": {"0": ["a"], "1": []}, "chunks": []},
        "summaries_dict.1: ",
    ),
    "chunks that nothing summarises": (
        {"chunks": ["only one"]},
        "found '1 chunks, 3 summaries'",
    ),
    "a summary that is no text": (
        {"summaries_dict": {"0": [4]}},
        r"summaries_dict.0.0: ",
    ),
    "no final summary": ({"final_summary": None}, "final_summary: "),
}


@pytest.mark.parametrize(("changes", "problem"), BAD.values(), ids=BAD)
def test_bad_summaries_are_refused_by_file_and_record(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    path = written(tmp_path / "books.json", {"Good": BOOK, "Bad": {**BOOK, **changes}})
    with pytest.raises(InputError, match=rf"books.json, record 2, .*{problem}"):
        list(read(path))


def test_a_real_file_is_read(shared: Path) -> None:
    path = shared / "veritrail" / "booookscore_one.json"
    process = process_of(path, ReadOptions(on_warning=lambda _: None))
    # Its last level is the final summary itself.
    assert process.sizes() == {"summary of level 0": 4, "final summary": 1}

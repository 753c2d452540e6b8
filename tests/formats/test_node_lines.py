"""Processes that items share, in our own format: one node a line, before their items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shared import LINES, NODES, item_line, node_lines, write_lines

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, detect, read, write
from spanlab.schema import SharedProcess

COUNTED = tuple({k: v for k, v in node.items() if k != "stage"} for node in NODES)


def changed(number: int, **changes: Any) -> list[dict[str, Any]]:
    nodes = [dict(node) for node in NODES]
    nodes[number] |= changes
    return [*node_lines(nodes), item_line("q1", "who")]


def test_items_of_a_file_share_a_process_of_which_only_what_is_asked_for_is_read(
    tmp_path: Path,
) -> None:
    path = write_lines(tmp_path / "two.jsonl")
    assert detect(path) == "spanlab"
    first, second = (record.item for record in read(path))
    assert isinstance(first.process, SharedProcess)
    assert isinstance(second.process, SharedProcess)
    assert first.process.source is second.process.source
    opened = second.process.opened()
    assert (opened.terminal.text, opened.terminal.sources) == (second.answer, ("B",))
    assert [node.text for node in opened.read(["B", "b"])] == ["Bo paid.", "Bo paid for it.\0"]
    assert (opened.stages, opened.stage_of("B")) == (("source", "summary", "answer"), "summary")


def test_what_is_read_is_written_again_byte_for_byte(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "two.jsonl")
    assert write(read(path), tmp_path / "again.jsonl") == 2
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


def test_stages_that_nobody_names_are_counted_and_written(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "two.jsonl", [*node_lines(COUNTED), item_line("q2", "money")])
    (record,) = read(path)
    assert isinstance(record.item.process, SharedProcess)
    source = record.item.process.source
    assert source is not None
    assert [node.stage for node in source.all()] == ["1", "1", "2", "2", "3", "3"]
    assert source.sizes() == {"1": 2, "2": 2, "3": 2}


BAD: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a cycle": (changed(0, sources=["who"]), r"bad.jsonl, line \d+: the process has a cycle: "),
    "an unknown source": (changed(2, sources=["z"]), "bad.jsonl, line 3: .*unknown source 'z'"),
    "a stage against an edge": (
        changed(0, stage="answer"),
        r"bad.jsonl, line \d+: the order of stages contradicts itself: ",
    ),
    "a stage that does not grow": (changed(3, stage="source"), "bad.jsonl, line 4: .*stages grow"),
    "a stage for some only": (changed(3, stage=""), "bad.jsonl, line 4: .*no stage, but others"),
    "a node twice": (changed(3, id="A"), "bad.jsonl, line 4: process node 'A' already exists"),
    "a node without text": (
        [*node_lines([{"id": "a"}]), item_line("q1", "who")],
        "bad.jsonl, line 1, node.text: the field is missing",
    ),
    "an answer that is no node": (
        [*node_lines(NODES[:4]), item_line("q1", "who")],
        "bad.jsonl, line 5, process.terminal: the process 'index' has no such node; found 'who'",
    ),
    "no nodes": (
        [item_line("q1", "who")],
        "bad.jsonl, line 1, process.id: no line before this one",
    ),
    "nodes after their item": (
        [*node_lines(NODES[:5]), item_line("q1", "who"), *node_lines(NODES[5:])],
        "bad.jsonl, line 7: a node of the process 'index' after an item that came from it",
    ),
}


@pytest.mark.parametrize(("lines", "problem"), BAD.values(), ids=BAD)
def test_a_bad_process_is_refused_by_file_and_line(
    tmp_path: Path, lines: list[dict[str, Any]], problem: str
) -> None:
    path = write_lines(tmp_path / "bad.jsonl", lines)
    with pytest.raises(InputError, match=problem):
        list(read(path))


def test_items_of_a_bad_process_are_left_out_with_the_line_at_fault(tmp_path: Path) -> None:
    lines = [*changed(2, sources=["z"]), item_line("q2", "money"), {"id": "x", "answer": "y"}]
    rejected: list[str] = []
    options = ReadOptions(on_reject=lambda each: rejected.append(each.reason))
    kept = read(write_lines(tmp_path / "bad.jsonl", lines), options)
    assert [record.item.id for record in kept] == ["x"]
    assert len(rejected) == 2
    assert all("bad.jsonl, line 3" in reason for reason in rejected)


def test_a_process_that_no_item_came_from_is_remarked_on(tmp_path: Path) -> None:
    said: list[str] = []
    lines = [*LINES[:6], {"id": "x", "answer": "y"}]
    path = write_lines(tmp_path / "one.jsonl", lines)
    assert len(list(read(path, ReadOptions(on_warning=said.append)))) == 1
    assert said == [f"{path}: no item came from the process 'index': it is left out"]


def test_processes_that_memory_should_not_hold_are_refused_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", "1")
    nodes = [{"id": f"n{number}", "text": "x" * 400_000} for number in range(12)]
    path = write_lines(tmp_path / "large.jsonl", [*node_lines(nodes), item_line("q1", "who")])
    problem = (
        r"large.jsonl, line 11: what the processes hold is too large; expected at most 8 MiB.*=2 "
    )
    with pytest.raises(InputError, match=problem):
        list(read(path))

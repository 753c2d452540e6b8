"""`spanlab annotators`: what it changes, and what it refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def imported(
    spanlab: Run,
    tmp_path: Path,
    write: Callable[..., Path],
    record: Callable[..., dict[str, object]],
) -> None:
    said: list[dict[str, object]] = [
        {"annotator": name, "kind": "person", "status": "done", "spans": []}
        for name in ("ana", "anna", "test-run")
    ]
    item = record(1, "The tower leans.", annotations=said)
    path = write(tmp_path / "items.jsonl", item)
    assert spanlab("import", path, "--dataset", "mine").returncode == 0


@pytest.mark.usefixtures("imported")
def test_annotators_are_edited_and_the_command_says_what_it_did(spanlab: Run) -> None:
    done = spanlab("annotators", "merge", "mine", "ana", "anna")
    assert "ana is anna now in mine; of 1 item that both had annotated" in done.stderr
    copied = spanlab("annotators", "gold", "mine", "anna")
    assert "1 item of mine has gold labels “gold of anna”" in copied.stderr
    undone = spanlab("annotators", "gold", "mine", "gold of anna", "--undo")
    assert "gold of anna, a copy of what anna finished, was deleted from mine" in undone.stderr
    renamed = spanlab("annotators", "rename", "mine", "anna", "Anna K.")
    assert "anna is now called Anna K. in mine" in renamed.stderr
    assert "deleted" in spanlab("annotators", "remove", "mine", "test-run", "--yes").stderr
    listed = spanlab("datasets").stdout
    assert "Anna K." in listed
    assert "test-run" not in listed


@pytest.mark.usefixtures("imported")
def test_what_cannot_be_is_refused_with_the_reason(spanlab: Run) -> None:
    refused = spanlab("annotators", "rename", "mine", "ana", "offline")
    assert (refused.returncode, "is the name of a detector" in refused.stderr) == (2, True)
    refused = spanlab("annotators", "remove", "mine", "eve", "--yes")
    assert (refused.returncode, "no annotator 'eve'" in refused.stderr) == (1, True)
    refused = spanlab("annotators", "remove", "mine", "ana")
    assert (refused.returncode, "Add --yes" in refused.stderr) == (2, True)
    assert "ana" in spanlab("datasets").stdout

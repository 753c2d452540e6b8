"""Versions of datasets, what differs between two, and the bin, at the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
_ANSWER = "The tower leans."


@pytest.fixture
def mine(
    spanlab: Run,
    tmp_path: Path,
    write: Callable[..., Path],
    record: Callable[..., dict[str, object]],
) -> None:
    marked = {"start": 4, "end": 9, "text": "tower", "prob": 1.0}
    said = [
        {"annotator": "anna", "kind": "person", "status": "done", "spans": [marked]},
        {"annotator": "gold", "kind": "gold", "status": "done", "spans": [marked]},
    ]
    items = [record(number, _ANSWER, annotations=said) for number in (1, 2)]
    path = write(tmp_path / "items.jsonl", *items)
    assert spanlab("import", path, "--dataset", "mine").returncode == 0


@pytest.mark.usefixtures("mine")
def test_a_version_stays_as_it_was_and_is_exported_scored_and_compared(
    spanlab: Run,
    tmp_path: Path,
    write: Callable[..., Path],
    record: Callable[..., dict[str, object]],
) -> None:
    kept = spanlab("snapshot", "mine", "v1")
    digest = kept.stderr.strip().rpartition(" ")[2]
    more = write(tmp_path / "more.jsonl", record(3, _ANSWER))
    assert spanlab("import", more, "--dataset", "mine").returncode == 0
    assert spanlab("annotators", "remove", "mine", "anna", "--yes").returncode == 0
    assert spanlab("export", "mine@v1", "-o", "v1.jsonl").returncode == 0
    assert sha256((tmp_path / "v1.jsonl").read_bytes()).hexdigest() == digest
    assert digest in spanlab("datasets", "mine@v1").stdout
    scored = spanlab("score", "mine@v1", "v1.jsonl", "--annotator", "anna", "--json")
    assert json.loads(scored.stdout)["macro"]["iou"]["mean"] == 1.0
    assert spanlab("rates", "mine@v1", "--by", "lang").returncode == 0
    found = json.loads(spanlab("diff", "mine@v1", "mine", "--json").stdout)
    assert len(found["only_b"]) == 1
    assert [(each["annotator"], each["b"]) for each in found["annotations"]] == [("anna", None)] * 2
    assert found["annotations"][0]["only_a"] == ["4–9 “tower” 1"]
    assert "nothing" in (shown := spanlab("diff", "mine@v1", "mine").stdout)
    assert "anna" in shown
    assert "4–9 “tower” 1" in shown
    for refused in (
        ("import", more, "--dataset", "mine@v1"),
        ("annotators", "remove", "mine@v1", "anna", "--yes"),
        ("annotate", "mine@v1", "--detector", "offline"),
        ("vote", "mine@v1", "--annotators", "anna"),
        ("datasets", "mine@v1", "--overlap", "2"),
    ):
        done = spanlab(*refused)
        assert done.returncode, refused
        assert "is a version" in done.stderr, refused
    assert "is taken" in spanlab("snapshot", "mine", "v1").stderr
    assert "is a version itself" in spanlab("snapshot", "mine@v1", "v2").stderr
    assert "cannot name a version" in spanlab("snapshot", "mine", "v@1").stderr


@pytest.mark.usefixtures("mine")
def test_a_deleted_dataset_comes_back_with_its_versions_or_goes_for_good(spanlab: Run) -> None:
    spanlab("snapshot", "mine", "v1")
    assert "mine is in the bin" in spanlab("bin", "put", "mine").stderr
    assert "mine" not in spanlab("datasets").stdout
    assert "no dataset named 'mine@v1'" in spanlab("datasets", "mine@v1").stderr
    assert "mine" in spanlab("bin", "list").stdout
    assert "ours is back" in spanlab("bin", "restore", "mine", "--as", "ours").stderr
    assert "the bin is empty" in spanlab("bin", "list").stdout
    assert spanlab("diff", "ours@v1", "ours").returncode == 0
    spanlab("bin", "put", "ours")
    assert "Add --yes" in spanlab("bin", "empty", "ours").stderr
    assert "0 datasets in the bin" in spanlab("bin", "empty", "ours", "--yes").stderr
    assert "available: nothing" in spanlab("bin", "restore", "ours").stderr

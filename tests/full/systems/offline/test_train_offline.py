"""Training the offline detector from the command line, and using what it leaves."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Answers about towers, half of them with a wrong year."""
    lines = []
    for number in range(48):
        year = 1700 + 7 * number
        said = year if number % 2 else year + 30
        answer = f"Tower {number + 100} was built in {said}."
        start = answer.index(str(said))
        span = {"start": start, "end": start + 4, "text": str(said), "prob": 1}
        gold = {"annotator": "gold", "kind": "gold", "status": "done"}
        lines.append(
            {
                "id": f"t{number}",
                "lang": "en",
                "question": f"When was tower {number + 100} built?",
                "answer": answer,
                "passages": [{"text": f"Tower {number + 100}, of red stone, dates from {year}."}],
                "annotations": [gold | {"spans": [] if number % 2 else [span]}],
            }
        )
    path = tmp_path / "towers.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.usefixtures("few_trees")
def test_a_model_is_trained_described_and_used(spanlab: Run, labelled: Path) -> None:
    done = spanlab("train-offline", labelled, "--folds", "2", "-o", "my.npz")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "with passages: IoU" in done.stderr
    card = json.loads((labelled.parent / "my.json").read_text(encoding="utf-8"))
    assert card["command"] == f"spanlab train-offline {labelled} --folds 2 -o my.npz"
    assert (card["items"], card["folds"], card["files"]) == ({"en": 48}, 2, ["towers.jsonl"])
    assert "no fact checker" in card["limits"]
    assert all(0 <= scores["calibration_errors"]["en"] <= 1 for scores in card["scores"])

    used = spanlab(
        "annotate", labelled, "--detector", "offline", "-o", "out.jsonl",
        stdout=subprocess.PIPE, SPANLAB_OFFLINE_MODEL="my.npz",
    )  # fmt: skip
    assert used.returncode == 0, used.stderr


def test_a_model_that_is_none_is_named(spanlab: Run, labelled: Path) -> None:
    done = spanlab(
        "annotate", labelled, "--detector", "offline",
        stdout=subprocess.PIPE, SPANLAB_OFFLINE_MODEL=str(labelled),
    )  # fmt: skip
    assert done.returncode == 1
    assert "not a model of the offline detector" in done.stderr


def test_labels_that_are_not_there_are_named(spanlab: Run, labelled: Path) -> None:
    done = spanlab("train-offline", labelled, "--annotator", "anna", "-o", "my.npz")
    assert done.returncode == 1
    assert "no finished annotation by 'anna'" in done.stderr
    assert not (labelled.parent / "my.npz").exists()

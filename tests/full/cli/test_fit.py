"""`spanlab fit`: the offline detector learns what people correct, and says whether it gains."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from towers import HABIT, tower

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def towers(tmp_path: Path) -> Callable[..., Path]:
    def write(first: int, stop: int, annotator: str = "anna", kind: str = "person") -> Path:
        path = tmp_path / f"towers-{first}-{stop}.jsonl"
        lines = (tower(number, annotator, kind) for number in range(first, stop))
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        return path

    return write


def _habits_marked(spanlab: Run, tmp_path: Path, dataset: str) -> int:
    """Return in how many answers of a dataset the detector decides against the phrase."""
    assert spanlab("export", dataset, "-o", "out.jsonl").returncode == 0
    return _habits_in(tmp_path / "out.jsonl")


def _habits_in(file: Path) -> int:
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    marks = [
        annotation["hard"]
        for record in records
        for annotation in record["annotations"]
        if annotation["annotator"] == "offline"
    ]
    assert len(marks) == len(records)
    return sum(any(part["start"] < len(HABIT) for part in hard) for hard in marks)


def test_a_habit_that_people_leave_is_not_marked_any_more(
    spanlab: Run, towers: Callable[..., Path], tmp_path: Path
) -> None:
    spanlab("import", towers(0, 36), "--dataset", "mine")
    spanlab("import", towers(50, 60), "--dataset", "others")
    spanlab("annotate", "mine", "--detector", "offline")
    before = _habits_marked(spanlab, tmp_path, "mine")
    assert before > 20

    tried = spanlab("fit", "mine", "--dry-run")
    assert "would gain from 36 answers by anna: nothing was changed" in tried.stderr
    fitted = spanlab("fit", "mine")
    assert fitted.returncode == 0, fitted.stderr
    (fit_id,) = set(re.findall("mine@[0-9a-f]{8}", fitted.stderr))
    assert "IoU, mean over answers" in fitted.stdout

    again = spanlab("annotate", "mine", "--detector", "offline", "--again")
    assert again.returncode == 0, again.stderr
    assert _habits_marked(spanlab, tmp_path, "mine") == 0
    assert _habits_marked_by(spanlab, tmp_path, "others") > 5
    assert _habits_marked_by(spanlab, tmp_path, "others", "fitted=mine") == 0
    assert _habits_marked_by(spanlab, tmp_path, "mine", "fitted=none") == before
    otherwise = spanlab(
        "annotate", "mine", "--detector", "offline", "--again", *("--option", "judge=closed-book")
    )
    assert "choose --option fitted=none with judge=closed-book" in otherwise.stderr

    file = towers(70, 75)
    for name in ("mine", fit_id):
        option = f"fitted={name}"
        command = ("annotate", file, "--detector", "offline", "--option", option, "-o", "f.jsonl")
        done = spanlab(*command)
        assert done.returncode == 0, done.stderr
        assert _habits_in(tmp_path / "f.jsonl") == 0
        assert f"fit “{fit_id}”" in (tmp_path / "f.jsonl").read_text(encoding="utf-8")
    unknown = spanlab("annotate", file, "--detector", "offline", "--option", "fitted=nothing")
    assert unknown.returncode == 1
    assert f"available: {fit_id}" in unknown.stderr

    # A version keeps the fit, and work in several processes finds it.
    assert spanlab("snapshot", "mine", "v1").returncode == 0
    removed = spanlab("fit", "mine", "--remove")
    assert f"removed '{fit_id}'" in removed.stderr
    assert _habits_marked_by(spanlab, tmp_path, "mine") == before
    parallel = ("fitted=mine@v1", "--concurrency", "2")
    assert _habits_marked_by(spanlab, tmp_path, "others", *parallel) == 0
    assert "has no fit" in spanlab("fit", "mine", "--remove").stderr


def _habits_marked_by(spanlab: Run, tmp_path: Path, dataset: str, *option: str) -> int:
    options = ("--option", *option) if option else ()
    done = spanlab("annotate", dataset, "--detector", "offline", "--again", *options)
    assert done.returncode == 0, done.stderr
    return _habits_marked(spanlab, tmp_path, dataset)


def test_too_few_reviews_are_refused_with_their_number(
    spanlab: Run, towers: Callable[..., Path]
) -> None:
    spanlab("import", towers(0, 12), "--dataset", "mine")
    done = spanlab("fit", "mine")
    assert done.returncode == 2
    assert "fitting needs 30 finished answers; anna finished 12 in 'mine'" in done.stderr
    nobody = spanlab("fit", "mine", "--annotator", "ben")
    assert "ben" in nobody.stderr
    assert nobody.returncode == 1

"""`spanlab stages`: where in a process the errors came in; and the import of processes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from traced import traced_file

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def imported(spanlab: Run, tmp_path: Path) -> None:
    done = spanlab("import", traced_file(tmp_path / "traced.jsonl"), "--dataset", "d")
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("imported")
def test_the_stages_of_errors_are_told_for_every_run(spanlab: Run) -> None:
    done = spanlab("stages", "d")
    assert done.returncode == 0, done.stderr
    first, _, summary, answer, second, *_ = done.stdout.splitlines()
    assert first == "first: 3 claims not supported, the stage of 2 known"
    # (1 + ½) / 2 and (0 + ½) / 2
    assert summary.split()[:2] == ["summary", "0.750"]
    assert answer.split()[:2] == ["answer", "0.250"]
    assert second == "second: 1 claim not supported, the stage of 1 known"
    # KL to the mean (⅜, ⅝) of (¾, ¼) and of (0, 1): (.4196 + .6781) / 2
    assert done.stdout.splitlines()[-1] == (
        "first and second: Jensen-Shannon divergence 0.549, Spearman -1.000"
    )
    assert "the errors that “first” and “second” make are not in them" in done.stdout


@pytest.mark.usefixtures("imported")
def test_all_figures_come_as_json(spanlab: Run) -> None:
    found = json.loads(spanlab("stages", "d", "--annotators", "first", "--json").stdout)
    assert found["stages"] == ["summary", "answer"]
    (run,) = found["runs"]
    assert (run["claims"], run["undetermined"]) == (3, 1)
    assert run["shares"]["summary"]["mean"] == 0.75
    assert found["pairs"] == []
    (remark,) = found["remarks"]
    assert "the errors that “first” makes are not in them" in remark


def test_a_dataset_without_claims_is_said_so(spanlab: Run, tmp_path: Path) -> None:
    (tmp_path / "plain.jsonl").write_text('{"id": "a", "answer": "x"}\n')
    spanlab("import", "plain.jsonl", "--dataset", "plain")
    done = spanlab("stages", "plain")
    assert done.returncode == 2
    assert done.stderr == "spanlab: no claim of 'plain' is judged by a detector\n"

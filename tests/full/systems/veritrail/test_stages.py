"""`spanlab stages`: where in a process the errors came in; and the import of processes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from traced import traced_file
from trail_answers import BUILT, SUMMARISED, TrailAnswers

from spanlab.formats import write
from spanlab.schema import Record
from spanlab.testing import ModelServer

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def imported(spanlab: Run, tmp_path: Path) -> None:
    done = spanlab("import", traced_file(tmp_path / "traced.jsonl"), "--dataset", "d")
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("imported")
def test_the_stages_of_errors_are_told_for_every_run(spanlab: Run) -> None:
    done = spanlab("stages", "d")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {("first", "3", "2"), ("second", "1", "1")} <= {*map(tuple, lines)}  # claims, known
    # (1 + ½) / 2 and (0 + ½) / 2
    assert ["summary", "first", "75.0", "%"] in [line[:4] for line in lines]
    assert ["answer", "first", "25.0", "%"] in [line[:4] for line in lines]
    assert ["answer", "second", "100.0", "%"] in lines, "of one claim alone there is no interval"
    # KL to the mean (⅜, ⅝) of (¾, ¼) and of (0, 1): (.4196 + .6781) / 2
    assert lines[-1] == ["first", "second", ".549", "-1.000"]
    assert "not the errors that “first” and “second” make" in done.stdout


@pytest.mark.usefixtures("imported")
def test_all_figures_come_as_json(spanlab: Run) -> None:
    found = json.loads(spanlab("stages", "d", "--annotators", "first", "--json").stdout)
    assert found["stages"] == ["summary", "answer"]
    (run,) = found["runs"]
    assert (run["claims"], run["undetermined"]) == (3, 1)
    assert run["shares"]["summary"]["mean"] == 0.75
    assert found["pairs"] == []
    (remark,) = found["remarks"]
    assert "not the errors that “first” makes" in remark


def test_gold_stages_are_what_runs_are_scored_by(spanlab: Run, tmp_path: Path) -> None:
    """Of three errors "first" names the stage of one, among others, and "second" of none."""
    path = traced_file(tmp_path / "traced.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line, stages in zip(
        lines[-2:], ({"A.": "draft", "B.": "answer"}, {"D.": "summary"}), strict=True
    ):
        claims = [
            {"text": text, "verdict": "not-supported", "error_stages": [stage]}
            for text, stage in stages.items()
        ]
        gold = {"annotator": "gold", "kind": "gold", "status": "done", "spans": []}
        line["annotations"].append(gold | {"claims": claims})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert spanlab("import", path, "--dataset", "d").returncode == 0
    first, second = json.loads(spanlab("stages", "d", "--json").stdout)["runs"]
    assert (first["known"], first["found"]["mean"]) == (3, pytest.approx(1 / 3))
    assert (second["known"], second["found"]["mean"]) == (2, 0)
    shown = spanlab("stages", "d").stdout
    assert re.search(r"first +3 +2 +3 +33\.3 % \[", shown)


def test_a_run_says_how_much_it_read_for_its_claims_and_what_one_cost(
    spanlab: Run, tmp_path: Path, model_server: ModelServer
) -> None:
    """Of four texts before the answer, three are read: one chapter is not followed to."""
    model_server.script(TrailAnswers(claims=(BUILT,)))
    write([Record(item=SUMMARISED)], tmp_path / "tower.jsonl")
    model = {"OPENAI_BASE_URL": model_server.url, "OPENAI_API_KEY": "any"}
    options = ("--detector", "veritrail", "--model", "scripted", "--price", "1,1,1")
    done = spanlab("annotate", "tower.jsonl", *options, "-o", "found.jsonl", **model)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r" · 1 claim · \$0\.00\d+ a claim · 75\.0 % of the texts before them read", done.stderr
    )


def test_a_dataset_without_claims_is_said_so(spanlab: Run, tmp_path: Path) -> None:
    (tmp_path / "plain.jsonl").write_text('{"id": "a", "answer": "x"}\n')
    spanlab("import", "plain.jsonl", "--dataset", "plain")
    done = spanlab("stages", "plain")
    assert done.returncode == 2
    assert done.stderr == "spanlab: no claim of 'plain' is judged by a detector\n"

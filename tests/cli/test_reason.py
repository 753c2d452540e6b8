"""`spanlab reason`: what people type and see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from reasoning_script import ReasoningScript, inputs

from spanlab.datasets import detect, read
from spanlab.testing import Ask, ModelServer, Reply, say, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]

HOTPOT = {
    "_id": "5a7",
    "question": "Where was the builder of the tower born?",
    "answer": "Oslo",
    "context": [["Tower", ["Ada built it.", " It is old."]], ["Ada", ["Ada was born in Oslo."]]],
    "supporting_facts": [["Tower", 0], ["Ada", 0]],
}
BUILT = "According to Passage 1, Ada built it. (Attribution)"
BORN = "According to Passage 2, Ada was born in Oslo. (Attribution)"
FINAL = "####ANSWER: Oslo (Final Answer)"


def test_ways_of_verifying_are_compared_on_the_same_questions(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text(json.dumps([HOTPOT]))
    redundant = {"errors": ["Redundancy"], "diagnosis": "Said already.", "guidance": "Go on."}
    steps = [BUILT, "So she built it. (Logical)", BORN, FINAL]
    # The first prompt of both ways is the same, and answered once: the second way goes on with
    # a repetition, which is refused freely.
    model_server.script(ReasoningScript({"": steps * 3}, {"So she": redundant}))
    done = spanlab(
        *("reason", "q.json", "--model", "m", "--verification", "none", "--verification", "safe"),
        *("--concurrency", "1", "--judge", "-o", "out.jsonl"),
    )
    assert done.returncode == 0, done.stderr
    ids = [record.item.id for record in read(tmp_path / "out.jsonl")]
    assert ids == ["5a7/none", "5a7/safe"]
    none, safe = done.stderr.splitlines()[-2:]
    assert none.startswith(
        "none: 1 question; exact match 1.000; F1 1.000; right despite a wrong step 0"
    )
    assert "judged right 0.000" in none
    assert safe.startswith("safe: 1 question; exact match 1.000; F1 1.000")
    assert safe.endswith("errors: Redundancy 2 (100% in the first three steps)")


def test_a_run_in_which_every_question_fails_exits_with_1(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text(json.dumps([HOTPOT]))
    model_server.script(lambda _ask: say(""))
    done = spanlab("reason", "q.json", "--model", "m", "-o", "out.jsonl")
    assert done.returncode == 1
    assert "safe: 1 question; 1 failed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_way_of_verifying_is_named_once(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text(json.dumps([HOTPOT]))
    done = spanlab(
        "reason", "q.json", "--model", "m", "--verification", "self", "--verification", "self"
    )
    assert done.returncode == 2
    assert "name each way of verifying once" in done.stderr


def test_an_output_of_no_known_ending_is_refused_before_a_model_is_asked(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text(json.dumps([HOTPOT]))
    for command in ("reason", "verify-benchmark", "ideal-trajectories"):
        done = spanlab(command, "q.json", "--model", "m", "-o", "out.xlsx")
        assert done.returncode == 2
        assert "'.xlsx' names no format; these do: .jsonl (spanlab), " in done.stderr
    assert model_server.requests == []
    model_server.script(lambda _ask: say(""))
    spanlab("reason", "q.json", "--model", "m", "-o", "out.csv")
    assert detect(tmp_path / "out.csv") == "csv"


def test_what_was_answered_before_a_kill_is_not_asked_for_again(
    model_server: ModelServer, tmp_path: Path
) -> None:
    questions = [HOTPOT | {"_id": f"q{number}", "question": f"{number}?"} for number in range(6)]
    (tmp_path / "q.json").write_text(json.dumps(questions))
    told = {f"{number}?": [BUILT, BORN, FINAL] for number in range(6)}
    script = ReasoningScript(told)

    def answer(ask: Ask) -> Reply:
        # A step depends on how far its question is, not on how often it was asked for.
        given = inputs(ask)
        if "feedback" not in given:
            return script(ask)
        return say_fields(step=[BUILT, BORN, FINAL][given["steps"].count("Step ")])

    model_server.script(answer)
    model_server.latency = 0.05
    command = [
        str(Path(sys.executable).with_name("spanlab")),
        "reason",
        "q.json",
        "--concurrency",
        "2",
    ]
    environment = os.environ | {"SPANLAB_HOME": str(tmp_path / "home")}
    whole = [*command, "-o", "out.jsonl"]
    with subprocess.Popen(whole, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as first:
        partial = tmp_path / "out.jsonl.partial"
        while not (partial.is_file() and b"\n" in partial.read_bytes()) and first.poll() is None:
            time.sleep(0.02)
        first.kill()
    assert json.loads(partial.read_bytes().splitlines()[0])["id"] == "q0", "as soon as it is there"
    assert not (tmp_path / "out.jsonl").exists()
    before = len(model_server.requests)
    done = subprocess.run(whole, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [record.item.id for record in read(tmp_path / "out.jsonl")] == [
        f"q{number}" for number in range(6)
    ]
    asked = model_server.fingerprints()
    assert len(set(asked)) == 36
    # Only the calls that were under way may have been made again: two questions' at most.
    again = set(asked[:before]) & set(asked[before:])
    assert len(again) <= 2

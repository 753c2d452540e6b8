"""`spanlab reason`: what people type and see."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from reasoning_script import ReasoningScript

from spanlab.datasets import read
from spanlab.testing import ModelServer, say

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
        "none: 1 question; exact match 1.000; F1 1.000; right with a wrong step 0"
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

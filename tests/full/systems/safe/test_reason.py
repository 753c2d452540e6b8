"""`spanlab reason`: what people type and see."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from forks import Fork, run_forked
from reasoning_script import ReasoningScript, inputs

from spanlab.formats import detect, read
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say, say_fields

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
    lines = [" ".join(line.split()) for line in done.stderr.splitlines()]
    # questions, failed, exact match, F1, judged correct, correct despite a wrong step. Nobody has
    # verified the steps of the first way: none of them is known to be wrong, or right.
    assert any(line.startswith("No verification 1 0 1.000 1.000 .000 – ") for line in lines)
    assert any(line.startswith("SAFE 1 0 1.000 1.000 .000 0 ") for line in lines)
    assert "safe Redundancy 2 100.0 %" in lines
    assert lines[-1] == "In the first three steps: safe 100.0 %."


def test_a_generator_that_repeats_itself_is_shown_every_refused_attempt(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text(json.dumps([HOTPOT]))
    wrong = "According to Passage 2, Ada was born in Rome. (Attribution)"
    contradictory = {"errors": ["Contradictory"], "diagnosis": "It says Oslo.", "guidance": "Look."}
    script = ReasoningScript({}, {"Rome": contradictory})
    told: list[str] = []

    def answer(ask: ModelRequest) -> ScriptedReply:
        given = inputs(ask)
        if "feedback" not in given:
            return script(ask)
        told.append(given["feedback"])
        if "Oslo" in given["steps"]:
            return say_fields(step=FINAL)
        # It insists once, and gives way to a prompt that says so.
        return say_fields(step=BORN if told[-1].count("born in Rome") == 2 else wrong)

    model_server.script(answer)
    done = spanlab("reason", "q.json", "--model", "m", "-o", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert "SAFE 1 0 1.000" in " ".join(done.stderr.split())
    first, second, third, after = told
    assert first == "(none yet)"
    assert second.splitlines() == [
        "Wrong: According to Passage 2, Ada was born in Rome.",
        "Error: Contradictory",
        "Diagnosis: It says Oslo.",
        "Guidance: Look.",
    ]
    # The prompt grows at its end, so that its beginning stays in a provider's cache.
    assert third == f"{second}\n\n{second}"
    assert after == "Guidance: Go on.", "what was refused is over with the step"
    (record,) = read(tmp_path / "out.jsonl")
    assert record.item.answer == f"Step 1: {BORN}\nStep 2: {FINAL}"


def test_the_judge_of_answers_has_a_model_and_options_of_its_own(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text(json.dumps([HOTPOT]))
    model_server.script(ReasoningScript({"": [BUILT, BORN, FINAL]}))
    done = spanlab(
        *("reason", "q.json", "--generator", "writer", "--judge", "-o", "out.jsonl"),
        *("--model-option", "answer-judge.temperature=0.5"),
        *("--model-option", "judge.temperature=0.25"),
        SPANLAB_MODEL="verifier",
        SPANLAB_MODEL_JUDGE="verifier",
        SPANLAB_MODEL_ANSWER_JUDGE="big",
    )
    assert done.returncode == 0, done.stderr
    asked = [(ask.body["model"], ask.body["temperature"]) for ask in model_server.requests]
    assert asked == [*[("writer", 0.0), ("verifier", 0.25)] * 3, ("big", 0.5)]


def test_missing_evidence_is_an_error_only_where_somebody_can_search(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text(json.dumps([HOTPOT]))
    (tmp_path / "corpus.jsonl").write_text('{"text": "Ada was born in Oslo."}\n')
    spanlab("index", "corpus.jsonl", "-o", "index")
    missing = {"errors": ["Missing Evidence"], "query": "Ada born"}
    told = {False: "Unsupported 1", True: "Missing Evidence 1"}
    for more in ((), ("--retriever", "bm25", "--corpus", "index")):
        before = len(model_server.requests)
        steps = [BUILT.replace("Ada", "Eva"), BUILT, BORN, FINAL]
        model_server.script(ReasoningScript({"": steps}, {"Eva": missing}))
        model = f"m{len(more)}"  # what another one answered is in the cache
        done = spanlab("reason", "q.json", "--model", model, "-o", "out.jsonl", *more)
        assert done.returncode == 0, done.stderr
        asked = [ask.text for ask in model_server.requests[before:] if "ruling" in ask.text]
        assert asked
        assert {"Missing Evidence" in text for text in asked} == {bool(more)}
        assert {'"query"' in text for text in asked} == {bool(more)}
        told_as = f"safe {told[bool(more)]} 100.0 %"
        assert told_as in " ".join(done.stderr.split())
        again = len(model_server.requests)
        spanlab("annotate", "out.jsonl", "--detector", "safe", "--model", f"{model}a", *more)
        asked = [ask.text for ask in model_server.requests[again:]]
        assert asked
        assert {"Missing Evidence" in text for text in asked} == {bool(more)}


def test_a_run_in_which_every_question_fails_exits_with_1(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text(json.dumps([HOTPOT]))
    model_server.script(lambda _ask: say(""))
    done = spanlab("reason", "q.json", "--model", "m", "-o", "out.jsonl")
    assert done.returncode == 1
    assert "SAFE 1 1 – –" in " ".join(done.stderr.split())
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

    def answer(ask: ModelRequest) -> ScriptedReply:
        # A step depends on how far its question is, not on how often it was asked for.
        given = inputs(ask)
        if "feedback" not in given:
            return script(ask)
        return say_fields(step=[BUILT, BORN, FINAL][given["steps"].count("Step ")])

    model_server.script(answer)
    model_server.latency = 0.05
    whole = ["spanlab", "reason", "q.json", "--concurrency", "2", "-o", "out.jsonl"]
    environment = os.environ | {"SPANLAB_HOME": str(tmp_path / "home")}
    first = Fork(whole, environment, tmp_path / "log", folder=tmp_path)
    partial = tmp_path / "out.jsonl.partial"
    while not (partial.is_file() and b"\n" in partial.read_bytes()) and first.poll() is None:
        time.sleep(0.02)
    first.kill()
    first.wait()
    assert json.loads(partial.read_bytes().splitlines()[0])["id"] == "q0", "as soon as it is there"
    assert not (tmp_path / "out.jsonl").exists()
    before = len(model_server.requests)
    done = run_forked(whole, environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert [record.item.id for record in read(tmp_path / "out.jsonl")] == [
        f"q{number}" for number in range(6)
    ]
    asked = model_server.fingerprints()
    assert len(set(asked)) == 36
    # Only the calls that were under way may have been made again: two questions' at most.
    again = set(asked[:before]) & set(asked[before:])
    assert len(again) <= 2

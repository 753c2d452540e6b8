"""`spanlab verifier-data`: what people said of steps becomes chats in three splits."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reasoning_script import inputs

from spanlab.formats import write
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AnswerPlace,
    Item,
    Passage,
    Record,
    Span,
)
from spanlab.systems.safe.steps import steps_in
from spanlab.systems.safe.trace import ReasoningTraceStep
from spanlab.systems.safe.verifier import flaw_in
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]

STEPS = (
    "According to Passage 1, Ada built it.",
    "According to Passage 2, Ada was born in Oslo.",
    "####ANSWER: Oslo",
)
ANSWER = "\n".join(
    f"Step {number}: {text} ({kind})"
    for number, (text, kind) in enumerate(
        zip(STEPS, ("Attribution", "Attribution", "Final Answer"), strict=True), 1
    )
)


def record(number: int, *spans: Span) -> Record:
    passages = (
        Passage(title="Tower", text="Ada built it."),
        Passage(title="Ada", text="Ada was born in Oslo."),
    )
    item = Item(
        id=f"q{number}",
        lang="en",
        question=f"Where was the builder born ({number})?",
        answer=ANSWER,
        passages=passages,
    )
    first = ANSWER.index(STEPS[0])
    told = ReasoningTraceStep(
        number=1,
        text=STEPS[0],
        does="Attribution",
        diagnosis="It names the builder.",
        guidance="Find her birthplace.",
        places=(AnswerPlace(start=first, end=first + len(STEPS[0])),),
    )
    verifier = Annotation(annotator="safe", kind=AnnotatorKind.DETECTOR, trace=(told,))
    return Record(
        item=item,
        annotations=(
            verifier,
            Annotation(annotator="anna", kind=AnnotatorKind.PERSON, spans=spans),
        ),
    )


def lines(folder: Path) -> list[dict[str, Any]]:
    names = ("train", "validation", "test")
    return [
        json.loads(line)
        for name in names
        for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]


def last_step(line: dict[str, Any]) -> str:
    return str(line["messages"][1]["content"]).rstrip().splitlines()[-1]


def test_people_s_corrections_and_injected_errors_become_chats_by_question(
    spanlab: Run, tmp_path: Path
) -> None:
    start = ANSWER.index(STEPS[0])
    wrong = Span.of(ANSWER, start, start + len(STEPS[0]), label="Off-topic")
    records = [record(0, wrong), *(record(number) for number in range(1, 12))]
    write(records, tmp_path / "reviewed.jsonl")
    done = spanlab("verifier-data", "reviewed.jsonl", "-o", "verifier")
    assert done.returncode == 0, done.stderr
    found = lines(tmp_path / "verifier")
    hard = [line for line in found if line["origin"] == "corrected"]
    assert [(line["id"], line["step"], line["error"]) for line in hard] == [("q0", 1, "Off-topic")]
    assert '"Off-topic"' in hard[0]["messages"][2]["content"]
    kept = [line for line in found if line["id"] == "q1" and line["origin"] == "reviewed"]
    assert [line["error"] for line in kept] == [None, None, None]
    assert "It names the builder." in kept[0]["messages"][2]["content"]
    assert [message["role"] for message in kept[0]["messages"]] == ["system", "user", "assistant"]
    assert last_step(kept[1]) == f"Step 2: {STEPS[1]} (Attribution)"
    places: dict[str, set[str]] = {}
    for name in ("train", "validation", "test"):
        for line in (tmp_path / "verifier" / f"{name}.jsonl").read_text("utf-8").splitlines():
            places.setdefault(json.loads(line)["question"], set()).add(name)
    assert len(places) == 12
    assert all(len(where) == 1 for where in places.values())
    settings = (tmp_path / "verifier" / "qlora.yaml").read_text()
    assert "lora_r: 64\nlora_alpha: 128\nlora_dropout: 0.05" in settings


def test_injected_errors_are_varied_and_not_what_is_found_without_a_model(
    spanlab: Run, tmp_path: Path
) -> None:
    write([record(number) for number in range(20)], tmp_path / "reviewed.jsonl")
    spanlab("verifier-data", "reviewed.jsonl", "-o", "verifier")
    injected = [line for line in lines(tmp_path / "verifier") if line["origin"] == "injected"]
    made: dict[str, set[str]] = {}
    for line in injected:
        shown = str(line["messages"][1]["content"]).partition("[[ ## steps ## ]]\n")[2]
        *earlier, step = steps_in(shown, "en")
        assert flaw_in(step, earlier, 2) is None, step.text
        made.setdefault(line["error"], set()).add(step.text)
    assert made.pop("Missing Evidence")
    assert len(made.pop("Inefficiency")) > 8
    assert len(made["Redundancy"]) > 3
    assert all("Ada built it." in text for text in made.pop("Redundancy"))
    # Each is said by the other passage.
    assert made.pop("Unsupported") == {
        "According to Passage 2, Ada built it.",
        "According to Passage 1, Ada was born in Oslo.",
    }
    assert made == {"Wrong Conclusion": {"####ANSWER: Ada"}}


def test_evidence_is_missing_when_its_passage_is_taken_away(spanlab: Run, tmp_path: Path) -> None:
    write([record(number) for number in range(20)], tmp_path / "reviewed.jsonl")
    spanlab("verifier-data", "reviewed.jsonl", "-o", "verifier")
    lacking = [line for line in lines(tmp_path / "verifier") if line["error"] == "Missing Evidence"]
    assert len(lacking) == 20
    of_step = {line["step"]: line for line in lacking}
    # Step 1 is cited by passage 1; without it, passage 2 is passage 1.
    prompt, reply = (of_step[1]["messages"][at]["content"] for at in (1, 2))
    assert "[1] Ada\nAda was born in Oslo." in prompt
    assert "Tower" not in prompt
    assert last_step(of_step[1]) == "Step 1: Ada built it. (Attribution)"
    assert '"query": "Ada built it."' in reply
    # What to look for after step 1 is what the verifier told.
    prompt, reply = (of_step[2]["messages"][at]["content"] for at in (1, 2))
    assert "Oslo.\n" not in prompt.partition("[[ ## steps")[0]
    assert "Step 1: According to Passage 1, Ada built it. (Attribution)" in prompt
    assert '"query": "Find her birthplace."' in reply
    assert '"Missing Evidence"' in reply
    # A verifier is asked with a search and without one: only with one is evidence missing.
    for line in lines(tmp_path / "verifier"):
        offered = "Missing Evidence" in line["messages"][0]["content"]
        assert ('"query"' in line["messages"][2]["content"]) is offered
        assert offered or line["error"] != "Missing Evidence"
    others = [line for line in lines(tmp_path / "verifier") if line["error"] is None]
    offers = ["Missing Evidence" in line["messages"][0]["content"] for line in others]
    assert len(offers) * 0.3 < sum(offers) < len(offers) * 0.7


def test_a_teacher_makes_right_steps_wrong_in_the_ways_that_rules_cannot(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    wrong = {
        "Off-topic": "According to Passage 1, the tower is old.",
        "Contradictory": "According to Passage 2, Ada was born in Rome.",
        "Information Miss": STEPS[0],  # a right step is no error
        "Premature Attribution": "According to Passage 9, Ada has a son.",  # nor is another error
        "Overthinking": "According to Passage 1, Ada built it well.",
        "Unsupported": "According to Passage 1, Ada built it in Oslo.",
        "Redundancy": "According to Passage 1, Ada was its builder.",
        "Inefficiency": "Now I will look at her birth.",  # which is found without a model
        "Wrong Conclusion": "####ANSWER: Bergen (Final Answer)",
    }
    asked: list[tuple[str, str]] = []

    def teach(ask: ModelRequest) -> ScriptedReply:
        given = inputs(ask)
        error = given["error"].partition(":")[0]
        asked.append((error, given["steps"].splitlines()[-1]))
        return say_fields(
            corrupted={"step": wrong[error], "diagnosis": f"It is {error}.", "guidance": "Mend it."}
        )

    model_server.script(teach)
    write([record(0)], tmp_path / "reviewed.jsonl")
    done = spanlab(
        *("verifier-data", "reviewed.jsonl", "--teacher", "m", "--no-inject", "-o", "verifier")
    )
    assert done.returncode == 0, done.stderr
    assert "3 answers of the teacher could not be used" in done.stderr
    assert ("Overthinking", f"Step 3: {STEPS[2]} (Final Answer)") in asked
    assert {error for error, _ in asked} == set(wrong), "no step is logical"
    made = [line for line in lines(tmp_path / "verifier") if line["origin"] == "injected"]
    kept = ("Off-topic", "Contradictory", "Overthinking", "Unsupported", "Redundancy")
    assert {line["error"]: last_step(line).partition(": ")[2] for line in made} == {
        **{error: f"{wrong[error]} (Attribution)" for error in kept},
        "Wrong Conclusion": wrong["Wrong Conclusion"],
    }
    for line in made:
        assert f"It is {line['error']}." in line["messages"][2]["content"]
        assert "Mend it." in line["messages"][2]["content"]


def test_a_teacher_says_what_is_wrong_in_hard_cases(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    shown: list[dict[str, str]] = []

    def teach(ask: ModelRequest) -> ScriptedReply:
        given = inputs(ask)
        if "verdict" not in given:
            return say("nothing")
        shown.append(given)
        return say_fields(feedback={"diagnosis": "Towers are beside it.", "guidance": "Ask who."})

    model_server.script(teach)
    start, last = ANSWER.index(STEPS[0]), ANSWER.index(STEPS[1])
    wrong = Span.of(ANSWER, start, start + len(STEPS[0]), label="Off-topic").model_copy(
        update={"note": "not needed"}
    )
    # Nobody but the person has judged the second step.
    other = Span.of(ANSWER, last, last + len(STEPS[1]), label="Contradictory")
    write([record(0, wrong, other)], tmp_path / "reviewed.jsonl")
    spanlab("verifier-data", "reviewed.jsonl", "--no-inject", "-o", "untaught")
    done = spanlab(
        *("verifier-data", "reviewed.jsonl", "--teacher", "m", "--no-inject", "-o", "verifier")
    )
    assert done.returncode == 0, done.stderr
    told = {given["steps"].splitlines()[-1]: given["verdict"].splitlines()[0] for given in shown}
    assert told == {
        f"Step 1: {STEPS[0]} (Attribution)": "Off-topic (a reader notes: not needed)",
        f"Step 2: {STEPS[1]} (Attribution)": "Contradictory",
    }
    before, after = (
        {line["step"]: line["messages"][2]["content"] for line in lines(tmp_path / folder)}
        for folder in ("untaught", "verifier")
    )
    for step, error in ((1, "Off-topic"), (2, "Contradictory")):
        assert "Write this step again" in before[step]
        assert f'"diagnosis": "Towers are beside it.", "errors": ["{error}"]' in after[step]
        assert '"guidance": "Ask who."' in after[step]
    assert after[3] == before[3], "a right step that nobody called wrong needs no teacher"


def test_without_a_judged_step_nothing_is_written(spanlab: Run, tmp_path: Path) -> None:
    write([Record(item=record(0).item)], tmp_path / "reviewed.jsonl")
    done = spanlab("verifier-data", "reviewed.jsonl", "-o", "verifier")
    assert done.returncode == 1
    assert "nobody has judged a step here" in done.stderr
    assert not list((tmp_path / "verifier").iterdir())


def test_the_verifier_s_types_are_scored_against_a_person_s(spanlab: Run, tmp_path: Path) -> None:
    start = ANSWER.index(STEPS[0])
    wrong = Span.of(ANSWER, start, start + len(STEPS[0]), label="Off-topic")
    write([record(0, wrong)], tmp_path / "reviewed.jsonl")
    sides = ("score", "reviewed.jsonl", "reviewed.jsonl", "--steps", "--gold", "anna")
    done = spanlab(*sides)
    assert done.returncode == 0, done.stderr
    assert "Accuracy .667, macro F1 over types .000." in done.stdout
    assert ["Off-topic", "right", "1"] in [line.split() for line in done.stdout.splitlines()]
    assert json.loads(spanlab(*sides, "--json").stdout)["types"][0]["name"] == "Off-topic"
    assert spanlab(*sides, "--claims").returncode == 2

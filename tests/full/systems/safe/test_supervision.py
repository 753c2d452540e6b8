"""`spanlab verify-benchmark` and `spanlab ideal-trajectories`: from questions to training data."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from reasoning_script import inputs

from spanlab.formats import read
from spanlab.schema import Status
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[4]

FACTS: Mapping[str, list[tuple[str, str, str]]] = {  # by a word of the passage
    "village": [("Sandvik", "is", "fishing village")],
    "designed": [("lighthouse of Sandvik", "designed by", "Karl Brenner")],
    "1830": [("Karl Brenner", "born in", "Bergen"), ("Bergen", "in", "Norway")],
    "painter": [("Karl Bergmann", "from", "Vienna")],
    "Holt": [("The Glass Orchard", "published in", "1954")],
    "1949": [("A Winter at Sea", "published in", "1949")],
    "six": [("Peter Rask", "wrote", "six novels")],
}
PLAN = (
    "Step 1: Find who designed the lighthouse. (Attribution)\n"
    "Step 2: Find the country of birth of the engineer from Step 1. (Attribution)"
)
STEPS = (
    "Step 1: According to Passage {at}, Karl Brenner designed the lighthouse of Sandvik. "
    "(Attribution)\n"
    "Step 2: According to Passage {then}, Karl Brenner was born in Bergen, Norway. (Attribution)\n"
    "Step 3: ####ANSWER: Norway (Final Answer)"
)


def relations(triples: list[tuple[str, str, str]]) -> list[dict[str, str]]:
    return [{"subject": s, "predicate": r, "object": o} for s, r, o in triples]


class Model:
    """Reads the sample questions; of the novels it takes one side only."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing = self.hints = ""

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        given = inputs(ask)
        task, answer = self._answer(given)
        self.asked.append(task)
        return say("no") if self.failing and self.failing in str(given) else answer

    def _answer(self, given: Mapping[str, str]) -> tuple[str, ScriptedReply]:
        if "known" in given:
            return "glean", say_fields(relations=[])
        if "passage" in given:
            found = next(said for word, said in FACTS.items() if word in given["passage"])
            return "extract", say_fields(relations=relations(found))
        if "names" in given:
            groups = [["Karl Brenner", "Karl Bergmann", "six novels"]]
            return "group", say_fields(groups=[] if "Norway" in given["names"] else groups)
        if "hints" in given:
            self.hints = given["hints"]
            return "plan", say_fields(plan=PLAN)
        if "plan" in given:
            numbers = {
                key: next(
                    line.split("]")[0].strip("[")
                    for line in given["passages"].splitlines()
                    if line.endswith(title)
                )
                for key, title in (("at", "Lighthouse of Sandvik"), ("then", "Karl Brenner"))
            }
            return "steps", say_fields(steps=STEPS.format(**numbers))
        words = ("designed by", "born in", "Norway", "A Winter")
        chosen = [
            line.partition(".")[0]
            for line in given["relations"].splitlines()
            if any(word in line for word in words)
        ]
        said: dict[str, Any] = {"valid": True, "relations": chosen, "explanation": "They say so."}
        return "path", say_fields(path=said)


def truthful(facts: list[tuple[str, str, str]], given: Mapping[str, str]) -> ScriptedReply:
    """Say these facts of every passage, and that they give the answer."""
    if "passage" in given:
        return say_fields(relations=[] if "known" in given else relations(facts))
    if "names" in given:
        return say_fields(groups=[])
    chosen = list(range(1, len(facts) + 1))
    return say_fields(path={"valid": True, "relations": chosen, "explanation": "So it is."})


def verified(spanlab: Run, server: ModelServer, model: Model, *more: str) -> Any:
    server.script(model)
    source = str(ROOT / "data" / "questions.jsonl")
    return spanlab("verify-benchmark", source, "--model", "m", "-o", "verified.jsonl", *more)


def test_questions_become_training_data(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    model = Model()
    done = verified(spanlab, model_server, model)
    assert done.returncode == 0, done.stderr
    table = [line.split() for line in done.stderr.splitlines()[-3:]]
    assert table[0] == ["Dataset", "Questions", "Failed", "Unverifiable", "Share"]
    assert table[1] == ["questions", "2", "0", "1", "50.0", "%"]
    assert " ".join(table[2]) == "1 question: one side missing"
    found = {record.item.id: record for record in read(tmp_path / "verified.jsonl")}
    good = found["lighthouse"].item.meta["benchmark-verification"]
    assert isinstance(good, dict)
    assert good["verified"] is True
    path: Any = good["path"]
    passages = found["lighthouse"].item.passages
    stated = {(step["subject"], step["object"], passages[step["passage"]].title) for step in path}
    assert stated == {
        ("lighthouse of Sandvik", "Karl Brenner", "Lighthouse of Sandvik"),
        ("Karl Brenner", "Bergen", "Karl Brenner"),
        ("Bergen", "Norway", "Karl Brenner"),
    }
    assert good["relations"] == 5
    bad = found["novels"].item.meta["benchmark-verification"]
    assert isinstance(bad, dict)
    assert (bad["verified"], bad["reason"]) == (False, "one side missing")
    assert "glass orchard" in str(bad["explanation"])
    assert all(not record.annotations for record in found.values())
    # Reasonings for what is verified; the other question stays as it is.
    model.asked.clear()
    ideal = ("ideal-trajectories", "verified.jsonl", "--model", "m", "-o", "ideal.jsonl")
    done = spanlab(*ideal)
    assert done.returncode == 0, done.stderr
    assert model.asked == ["plan", "steps"]
    assert "lighthouse of Sandvik – designed by" in model.hints
    assert "Norway" not in model.hints, "the way, and not the answer"
    reasoned = {record.item.id: record for record in read(tmp_path / "ideal.jsonl")}
    assert reasoned["novels"].item == found["novels"].item
    said = reasoned["lighthouse"]
    assert said.item.answer.endswith("Step 3: ####ANSWER: Norway (Final Answer)")
    (annotation,) = said.annotations
    assert (annotation.annotator, annotation.spans) == ("ideal-trajectory", ())
    # Training data.
    done = spanlab("verifier-data", "ideal.jsonl", "-o", "verifier")
    assert done.returncode == 0, done.stderr
    assert "left out 1 unverifiable question" in done.stderr
    lines = [
        json.loads(line)
        for file in sorted((tmp_path / "verifier").glob("*.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    ]
    right = [line for line in lines if line["origin"] == "ideal"]
    assert [(line["step"], line["error"]) for line in right] == [(1, None), (2, None), (3, None)]
    assert "Find the country of birth" in right[0]["messages"][2]["content"]
    assert "####ANSWER: Norway" in right[1]["messages"][2]["content"]
    lacking = [line for line in lines if line["error"] == "Missing Evidence"]
    assert len(lacking) == 1
    assert "Find" in lacking[0]["messages"][2]["content"] or lacking[0]["step"] == 1
    assert {line["origin"] for line in lines} == {"ideal", "injected"}


def test_a_question_that_fails_says_why_and_the_others_go_on(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    model = Model()
    model.failing = "Holt"
    done = verified(spanlab, model_server, model)
    assert done.returncode == 0, done.stderr
    records = {record.item.id: record for record in read(tmp_path / "verified.jsonl")}
    (failed,) = records["novels"].annotations
    assert failed.status is Status.FAILED
    assert "benchmark-verification" not in records["novels"].item.meta
    assert ["questions", "2", "1", "0", "0.0", "%"] in [
        line.split() for line in done.stderr.splitlines()
    ]
    # Answered calls are not made again.
    before = len(model_server.requests)
    model.failing = ""
    assert verified(spanlab, model_server, model).returncode == 0
    again = model_server.requests[before:]
    assert 0 < len(again) < before
    assert "one side missing" in verified(spanlab, model_server, model).stderr


def test_no_right_reasoning_is_a_failure_and_no_item_for_training(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    objections: list[str] = []

    def answer(ask: ModelRequest) -> ScriptedReply:
        given = inputs(ask)
        if "hints" in given:
            return say_fields(plan=PLAN)
        objections.append(given["objection"].partition("\n\n# Task")[0])
        return say_fields(steps="No.")

    model_server.script(answer)
    source = str(ROOT / "data" / "questions.jsonl")
    ideal = ("ideal-trajectories", source, "--model", "m", "-o", "ideal.jsonl")
    done = spanlab(*ideal)
    assert done.returncode == 1
    reason = "2 questions: no ideal reasoning: the plan and the final answer take 3 steps, not 1"
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    # A flaw that comes again makes another prompt, which the cache does not answer.
    flaw = reason.rpartition(": ")[2]
    assert sorted(objections) == sorted(2 * ["(none)", flaw, f"{flaw}\n{flaw}"])
    done = spanlab("verifier-data", "ideal.jsonl", "-o", "verifier")
    assert done.returncode == 1
    assert "nobody has judged a step here" in done.stderr


@pytest.mark.parametrize(
    ("texts", "titles"),
    [
        (["Orca: The Whale: It was directed by Mo Ray.", "Orca: It is a town."], None),
        (["It was directed by Mo Ray.", "It is a town."], ["Orca: The Whale", "Orca"]),
        (
            ["Orca: The Whale: It was directed by Mo Ray.", "Orca: It is a town."],
            ["Orca: The Whale", "Orca"],
        ),
        (["Orca: The Whale: It was directed by Mo Ray.", "Note: a town."], ["Orca: The Whale", ""]),
    ],
    ids=["gold", "beside", "both", "untitled"],
)
def test_a_title_with_a_colon_names_the_passage_that_supports_the_answer(
    model_server: ModelServer,
    spanlab: Run,
    tmp_path: Path,
    texts: list[str],
    titles: list[str] | None,
) -> None:
    question = {
        "id": "q",
        "question": "Who directed Orca: The Whale?",
        "answers": ["Mo Ray"],
        "gold_titles": ["Orca: The Whale"],
        "retrieved_passages": texts,
        **({} if titles is None else {"passage_titles": titles}),
    }
    (tmp_path / "q.jsonl").write_text(json.dumps(question))
    read_passages: list[str] = []

    def answer(ask: ModelRequest) -> ScriptedReply:
        given = inputs(ask)
        if "passage" in given and "known" not in given:
            read_passages.append(given["passage"].partition("\n\n# Task")[0])
        return truthful([("Orca: The Whale", "directed by", "Mo Ray")], given)

    model_server.script(answer)
    done = spanlab("verify-benchmark", "q.jsonl", "--model", "m", "-o", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert read_passages == ["Orca: The Whale\nIt was directed by Mo Ray."]
    (record,) = read(tmp_path / "out.jsonl")
    assert "passage_titles" not in record.item.meta
    others = [(each.title, each.text) for each in record.item.passages if each.title == "Orca"]
    untitled = [each.text for each in record.item.passages if each.title is None]
    assert (others, untitled) in [([("Orca", "It is a town.")], []), ([], ["Note: a town."])]


def test_titles_for_other_passages_than_there_are_name_the_line(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    question = {"question": "Who?", "answers": ["A"], "retrieved_passages": ["b", "c"]}
    (tmp_path / "q.jsonl").write_text(json.dumps({**question, "passage_titles": ["B"]}))
    done = spanlab("verify-benchmark", "q.jsonl", "--model", "m", "-o", "out.jsonl")
    assert done.returncode == 1
    assert "not every passage has its title" in done.stderr
    assert "q.jsonl" in done.stderr
    assert "one for each of the 2 in `retrieved_passages`" in done.stderr


@pytest.mark.parametrize(
    ("named", "stated"),
    [
        ("P.S. I Love You", "P.S. I Love You"),
        ("P.S. I Love You", "PS I Love You"),
        ("J. K. Rowling", "J.K. Rowling"),
        ("JK Rowling", "J. K. Rowling"),
        ("the U.S. Open", "US Open"),
        ("John F Kennedy", "John F. Kennedy"),
    ],
)
def test_a_name_with_dots_is_the_question_s_however_either_writes_it(
    model_server: ModelServer, spanlab: Run, tmp_path: Path, named: str, stated: str
) -> None:
    question = {
        "id": "q",
        "question": f"What is {named} known for?",
        "answers": ["Wit"],
        "retrieved_passages": [f"{stated}: It is known for wit."],
    }
    (tmp_path / "q.jsonl").write_text(json.dumps(question))
    model_server.script(lambda ask: truthful([(stated, "known for", "Wit")], inputs(ask)))
    done = spanlab("verify-benchmark", "q.jsonl", "--model", "m", "-o", "out.jsonl")
    assert done.returncode == 0, done.stderr
    (record,) = read(tmp_path / "out.jsonl")
    found: Any = record.item.meta["benchmark-verification"]
    assert found["verified"], found


FACT = "She ran the 5th race of the 1990s, the 38th of 1,200, with 30kg and an F16 for J. K. Moe."


@pytest.mark.parametrize(
    "quote",
    [
        FACT,
        FACT.replace("30kg", "30 kg").replace("1,200", "1200").replace("J. K.", "J.K."),
        FACT.replace("She ran", "Ann Lee (1990s) ran").replace("J. K.", "JK"),
    ],
)
def test_a_quote_with_numbers_and_initials_is_an_ideal_step(
    model_server: ModelServer, spanlab: Run, tmp_path: Path, quote: str
) -> None:
    given, done = reasoned(model_server, spanlab, tmp_path, quote)
    assert done.returncode == 0, done.stderr
    assert given == ["(none)"], "it is not objected to"


@pytest.mark.parametrize(
    ("word", "other"),
    [("5th", "15th"), ("1990s", "1990"), ("38th", "39th"), ("30kg", "31kg"), ("1,200", "1,201")],
)
def test_another_number_than_the_passage_has_is_refused(
    model_server: ModelServer, spanlab: Run, tmp_path: Path, word: str, other: str
) -> None:
    quote = FACT.replace(word, other)
    _, done = reasoned(model_server, spanlab, tmp_path, quote)
    assert done.returncode == 1
    number = other.removesuffix("kg").replace(",", "")
    assert f"step 1 has '{number}', which its passage does not have" in done.stderr


def reasoned(
    server: ModelServer, spanlab: Run, folder: Path, quote: str
) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """Have a quote of the passage be the one step of an ideal reasoning.

    Returns:
        What was objected to before each attempt, and the command's result.
    """
    question = {
        "id": "q",
        "question": "What did Ann Lee do?",
        "answers": ["race"],
        "retrieved_passages": [f"Ann Lee: Ann Lee was a runner. {FACT}"],
    }
    (folder / "q.jsonl").write_text(json.dumps(question))
    objections: list[str] = []

    def answer(ask: ModelRequest) -> ScriptedReply:
        given = inputs(ask)
        if "hints" in given:
            return say_fields(plan="Step 1: Find what Ann Lee did. (Attribution)")
        objections.append(given["objection"].partition("\n\n# Task")[0])
        step = f"Step 1: According to Passage 1, {quote} (Attribution)"
        return say_fields(steps=f"{step}\nStep 2: ####ANSWER: race (Final Answer)")

    server.script(answer)
    command = ("ideal-trajectories", "q.jsonl", "--model", "m", "-o", "ideal.jsonl")
    return objections, spanlab(*command)


def test_a_question_without_an_answer_is_told(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    model_server.script(Model())
    (tmp_path / "q.jsonl").write_text(
        json.dumps({"id": "q", "question": "Who?", "retrieved_passages": ["A: b."], "answers": []})
    )
    done = spanlab("verify-benchmark", "q.jsonl", "--model", "m", "-o", "out.jsonl")
    assert done.returncode == 1
    assert "no answer is known" in done.stderr

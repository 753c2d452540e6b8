"""Reasoning with a verifier: a scripted generator and verifier, real calls, a real index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reasoning_script import ReasoningScript
from tuned_programs import tuned_program

import spanlab
from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import (
    Item,
    Passage,
    QueryStep,
    Record,
    Status,
    TunedPredictor,
)
from spanlab.search.index import build
from spanlab.search.spec import Bm25Spec
from spanlab.systems.safe.trace import ReasoningTraceStep
from spanlab.testing import ModelServer, say

QUESTION = "Where was the builder of the tower born?"
BUILT = "According to Passage 1, Ada Smith built the tower. (Attribution)"
WRONG = "According to Passage 1, Ada Smith was born in Rome. (Attribution)"
BORN = "According to Passage 2, Ada Smith was born in Oslo. (Attribution)"
FINAL = "####ANSWER: Oslo (Final Answer)"
CONTRADICTORY = {
    "diagnosis": "Passage 2 says Oslo.",
    "errors": ["Contradictory"],
    "guidance": "Say that she was born in Oslo.",
    "sentence": "Ada Smith was born in Oslo.",
    "words": ["Rome"],
}
RECORD = Record(
    item=Item(
        id="tower",
        lang="en",
        question=QUESTION,
        answer="",
        passages=(
            Passage(text="Ada Smith built the tower."),
            Passage(text="Ada Smith was born in Oslo."),
        ),
        meta={"answers": ["Oslo"]},
    )
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path / "home"))


def attempts(record: Record) -> list[tuple[int, int | None, str | None, bool]]:
    (annotation,) = record.annotations
    return [
        (step.number, step.round, step.error, step.stands)
        for step in annotation.trace
        if isinstance(step, ReasoningTraceStep)
    ]


def test_a_wrong_step_is_revised_and_the_item_has_the_steps_as_its_answer(
    model_server: ModelServer,
) -> None:
    script = ReasoningScript({"": [BUILT, WRONG, BORN, FINAL]}, {"Rome": CONTRADICTORY})
    model_server.script(script)
    (record,) = spanlab.reason([RECORD])
    assert record.item.answer == f"Step 1: {BUILT}\nStep 2: {BORN}\nStep 3: {FINAL}"
    outcome = record.item.meta["reasoning"]
    assert isinstance(outcome, dict)
    assert outcome.pop("tokens")
    assert outcome == {
        "verification": "safe",
        "answer": "Oslo",
        "forced": False,
        "unresolved": 0,
        "calls": 8,
    }
    assert attempts(record) == [
        (1, 1, None, True),
        (2, 1, "Contradictory", False),
        (2, 2, None, True),
        (3, 1, None, True),
    ]
    assert record.annotations[0].spans == ()
    told = script.asked[2]["feedback"]
    assert "Wrong: According to Passage 1, Ada Smith was born in Rome." in told
    assert "Error: Contradictory" in told
    assert "Diagnosis: Passage 2 says Oslo." in told
    assert "Guidance: Say that she was born in Oslo." in told
    assert script.asked[1]["feedback"] == "Guidance: Go on."


@pytest.mark.parametrize(
    ("feedback", "shown", "hidden"),
    [("guidance", "Guidance:", "Diagnosis:"), ("diagnosis", "Diagnosis:", "Guidance:")],
)
def test_half_of_the_feedback_can_be_left_out(
    model_server: ModelServer, feedback: str, shown: str, hidden: str
) -> None:
    script = ReasoningScript({"": [WRONG, BORN, FINAL]}, {"Rome": CONTRADICTORY})
    model_server.script(script)
    spanlab.reason([RECORD], feedback=feedback)
    assert shown in script.asked[1]["feedback"]
    assert hidden not in script.asked[1]["feedback"]


def test_a_step_that_stays_wrong_stands_and_is_marked(model_server: ModelServer) -> None:
    script = ReasoningScript({"": [WRONG, WRONG, FINAL]}, {"Rome": CONTRADICTORY})
    model_server.script(script)
    (record,) = spanlab.reason([RECORD], retries=1)
    (annotation,) = record.annotations
    assert [(span.text, span.label) for span in annotation.spans] == [
        (WRONG.removesuffix(" (Attribution)"), "Contradictory"),
        ("Rome", "Contradictory"),
    ]
    assert annotation.spans[0].evidence[0].text == "Ada Smith was born in Oslo."
    assert script.asked[2]["feedback"].startswith("Error: Contradictory")


def test_an_answer_is_forced_after_the_last_step(model_server: ModelServer) -> None:
    model_server.script(ReasoningScript({"": [BUILT, BORN]}))
    (record,) = spanlab.reason([RECORD], steps=2)
    assert record.item.answer.endswith("\nStep 3: ####ANSWER: forced (Final Answer)")
    assert record.annotations[0].note == "answer forced after 2 steps"


def test_of_two_steps_in_one_reply_the_first_counts_and_an_empty_one_is_refused_freely(
    model_server: ModelServer,
) -> None:
    script = ReasoningScript({"": [f"Step 1: {BUILT}\nStep 2: {FINAL}", "…", BORN, FINAL]})
    model_server.script(script)
    (record,) = spanlab.reason([RECORD])
    assert record.item.answer == f"Step 1: {BUILT}\nStep 2: {BORN}\nStep 3: {FINAL}"
    assert attempts(record)[1] == (2, 1, "Inefficiency", False)
    assert len(script.verified) == 3


def test_self_verification_asks_the_generator_and_none_asks_nobody(
    model_server: ModelServer,
) -> None:
    model_server.script(ReasoningScript({"": [BUILT, BORN, FINAL]}))
    (unverified,) = spanlab.reason([RECORD], "none", generator="small")
    assert unverified.annotations == ()
    assert {ask.body["model"] for ask in model_server.requests} == {"small"}
    assert model_server.count == 3
    model_server.script(ReasoningScript({"": [BUILT, BORN, FINAL]}))
    (own,) = spanlab.reason([RECORD], "self", generator="other")
    assert [each.annotator for each in own.annotations] == ["self-verification"]
    assert {ask.body["model"] for ask in model_server.requests[3:]} == {"other"}
    model_server.script(ReasoningScript({"": [BUILT, BORN, FINAL]}))
    spanlab.reason([RECORD], "safe", generator="third")
    assert {ask.body["model"] for ask in model_server.requests[9:]} == {"third", "scripted-model"}


@pytest.mark.parametrize("found", [True, False])
def test_missing_evidence_is_searched_for(
    model_server: ModelServer, tmp_path: Path, found: bool
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    text = "Ada Smith was born in Oslo." if found else "Trees."
    corpus.write_text(f'{{"text": "{text}"}}\n')
    build(corpus, tmp_path / "index")
    missing = {
        "errors": ["Missing Evidence", "Unsupported"],
        "query": "Ada Smith born",
        "guidance": "Look again.",
    }
    script = ReasoningScript({"": [WRONG, BORN, FINAL]}, {"Rome": missing})
    model_server.script(script)
    bare = RECORD.item.model_copy(update={"passages": RECORD.item.passages[:1]})
    (record,) = spanlab.reason(
        [Record(item=bare)], retriever=Bm25Spec(corpus=str(tmp_path / "index"))
    )
    searches = [step for step in record.annotations[0].trace if isinstance(step, QueryStep)]
    assert [(step.text, step.passages) for step in searches] == [
        ("Ada Smith born", (1,) if found else ())
    ]
    told = "New passages were found: 2." if found else "Nothing was found for “Ada Smith born”."
    assert told in script.asked[1]["feedback"]
    assert len(record.item.passages) == (2 if found else 1)


def test_one_unreadable_reply_fails_its_question_alone(model_server: ModelServer) -> None:
    script = ReasoningScript({"": [BUILT, BORN, FINAL]})
    other = RECORD.item.model_copy(update={"id": "other", "question": "Who built it?"})
    model_server.script(lambda ask: say("Hm.") if "Who built it?" in ask.text else script(ask))
    good, bad = spanlab.reason([RECORD, Record(item=other)])
    assert good.annotations[0].status is Status.DONE
    assert bad.annotations[0].status is Status.FAILED
    assert bad.item.answer == ""


def test_what_was_answered_is_not_asked_again(model_server: ModelServer) -> None:
    model_server.script(ReasoningScript({"": [BUILT, WRONG, BORN, FINAL]}, {"Rome": CONTRADICTORY}))
    first = spanlab.reason([RECORD])
    asked = model_server.fingerprints()
    assert len(asked) == len(set(asked)) == 8
    again = spanlab.reason([RECORD])
    assert model_server.fingerprints() == asked
    assert again[0].item.answer == first[0].item.answer


def test_each_later_prompt_begins_with_what_the_earlier_one_said_of_the_question(
    model_server: ModelServer,
) -> None:
    model_server.script(ReasoningScript({"": [BUILT, BORN, FINAL]}))
    spanlab.reason([RECORD])
    texts = [ask.text for ask in model_server.requests]
    generated = [text.partition("\n\n[[ ## feedback ## ]]")[0] for text in texts[::2]]
    assert generated[2].startswith(generated[1])
    assert generated[1].startswith(generated[0].removesuffix("(none yet)"))
    verified = texts[1::2]
    assert verified[1].startswith(verified[0])
    assert verified[2].startswith(verified[1])


def test_a_tuned_program_has_prompts_of_the_verifier_and_of_the_generator(
    model_server: ModelServer,
) -> None:
    tuned = {
        name: TunedPredictor(instruction=f"Tuned to {name}.")
        for name in ("verify", "next", "conclude")
    }
    program = tuned_program("both", detector="safe").model_copy(update={"predictors": tuned})
    programs = ProgramRegistry(Settings.read().programs)
    programs.save(program)
    programs.choose("safe", "both")
    model_server.script(ReasoningScript({"": [BUILT]}))
    (record,) = spanlab.reason([RECORD], steps=1)
    other = record.item.model_copy(update={"question": "And now?"})
    spanlab.annotate([Record(item=other)], "safe")
    asked = [re.findall(r"Tuned to (\w+)\.", ask.text) for ask in model_server.requests]
    assert asked == [["next"], ["verify"], ["conclude"], ["verify"], ["verify"]]


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UsageError, match="reason: stepps"):
        spanlab.reason([RECORD], stepps=3)

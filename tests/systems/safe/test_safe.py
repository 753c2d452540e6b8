"""`safe`: the wrong steps of an answer, found with a scripted verifier and real calls."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from detector_cases import Make, detect
from prompts import TASK, prompt_of

from spanlab.schema import Annotation, Item, Passage, RemarkStep, Status
from spanlab.systems.safe.trace import ReasoningTraceStep
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say, say_fields

STEPS = (
    "According to Passage 1, the tower is in Rome.",
    "According to Passage 2, Ada Smith built the tower.",
    "According to Passage 2, Ada Smith built the tower.",
    "According to Passage 7, it is old.",
    "So it is in Rome.",
)
ANSWER = (
    f"Step 1: {STEPS[0]} (Attribution)\nStep 2: {STEPS[1]} (Attribution)\n"
    f"Step 3: {STEPS[2]} (Attribution)\nStep 4: {STEPS[3]} (Attribution)\n"
    f"Step 5: {STEPS[4]} (Logical)\nStep 6: ####ANSWER: Rome (Final Answer)"
)
ITEM = Item(
    id="tower",
    lang="en",
    question="Where is the tower?",
    answer=ANSWER,
    passages=(
        Passage(text="Towers are high. The tower stands in Paris.", title="Tower"),
        Passage(text="Ada Smith built the tower."),
    ),
)
RIGHT: dict[str, object] = {"diagnosis": "fine", "errors": [], "guidance": "go on"}


def ruling(ask: ModelRequest) -> dict[str, object]:
    """Say what is wrong with the last step that a prompt shows."""
    number, text = re.findall(r"^Step (\d+): (.*)$", prompt_of(ask), re.M)[-1]
    said: dict[str, dict[str, object]] = {
        "1": {
            "diagnosis": "It is in Paris.",
            "errors": ["Premature Attribution", "contradictory"],
            "guidance": "State that it is in Paris.",
            "sentence": "The tower stands in Paris.",
            "words": ["Rome"],
        },
        "6": {
            "diagnosis": "Not where it is.",
            "errors": "Wrong Conclusion",
            "guidance": "Correct.",
        },
    }
    assert text == ANSWER.splitlines()[int(number) - 1].partition(": ")[2]
    return said.get(number, RIGHT)


def verifier(ask: ModelRequest) -> ScriptedReply:
    return say_fields(ruling=ruling(ask))


def trace_of(annotation: Annotation) -> list[ReasoningTraceStep]:
    return [step for step in annotation.trace if isinstance(step, ReasoningTraceStep)]


def test_wrong_steps_become_spans_with_type_note_and_evidence(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(verifier)
    found = detect(make("safe"), ITEM)
    annotation = found.annotation
    assert [(span.text, span.label) for span in annotation.spans] == [
        (STEPS[0], "Contradictory"),
        ("Rome", "Contradictory"),
        (STEPS[2], "Redundancy"),
        (STEPS[3], "Unsupported"),
        ("####ANSWER: Rome", "Wrong Conclusion"),
    ]
    first = annotation.spans[0]
    assert first.note == "It is in Paris. State that it is in Paris."
    assert [(each.text, each.passage, each.stance) for each in first.evidence] == [
        ("The tower stands in Paris.", 0, "refutes")
    ]
    assert [(step.error, step.family) for step in trace_of(annotation)] == [
        ("Contradictory", "Attribution"),
        (None, None),
        ("Redundancy", "Procedural"),
        ("Unsupported", "Attribution"),
        (None, None),
        ("Wrong Conclusion", "Final Answer"),
    ]
    # What is certain is not asked for: the repetition and the passage that does not exist.
    assert model_server.count == 4


def test_each_later_prompt_begins_with_the_earlier_one(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(verifier)
    detect(make("safe"), ITEM)
    prompts = sorted((ask.text for ask in model_server.requests), key=len)
    assert len(prompts) == 4
    for earlier, later in pairwise(prompts):
        assert later.startswith(earlier)


def test_words_are_left_alone_where_that_is_chosen(model_server: ModelServer, make: Make) -> None:
    model_server.script(verifier)
    spans = detect(make("safe", options={"words": False}), ITEM).annotation.spans
    assert [span.text for span in spans] == [*STEPS[:1], *STEPS[2:4], "####ANSWER: Rome"]


def test_an_answer_without_steps_is_verified_sentence_by_sentence(
    model_server: ModelServer, make: Make
) -> None:
    def script(ask: ModelRequest) -> ScriptedReply:
        asked = prompt_of(ask).partition(TASK)[0].rstrip()
        wrong = asked.endswith("Rome.")
        kind = "Attribution" if wrong else "Logical step"
        return say_fields(
            ruling={**RIGHT, "errors": ["Unsupported"] if wrong else [], "kind": kind}
        )

    model_server.script(script)
    item = ITEM.model_copy(update={"answer": "The tower stands in Rome. So it is Italian."})
    annotation = detect(make("safe"), item).annotation
    assert [(span.text, span.label) for span in annotation.spans] == [
        ("The tower stands in Rome.", "Unsupported")
    ]
    assert [step.does for step in trace_of(annotation)] == ["Attribution", "Logical"]


@pytest.mark.parametrize("errors", ["Incorrect", ["Bad"], None])
def test_an_unreadable_reply_is_asked_for_once_more_and_then_fails_its_step(
    model_server: ModelServer, make: Make, errors: object
) -> None:
    def script(ask: ModelRequest) -> ScriptedReply:
        lines = re.findall(r"^Step (\d+):", prompt_of(ask), re.M)
        return say_fields(ruling={**RIGHT, "errors": errors if lines[-1] == "2" else []})

    model_server.script(script)
    annotation = detect(make("safe"), ITEM).annotation
    assert annotation.status is Status.DONE
    assert annotation.note == "1 of 6 steps could not be verified"
    assert any(
        isinstance(step, RemarkStep) and step.text.startswith("step 2 not verified")
        for step in annotation.trace
    )
    assert model_server.count == 5


def test_an_item_of_which_no_step_could_be_verified_has_failed(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda _ask: say("no idea"))
    item = ITEM.model_copy(update={"answer": "It stands in Rome."})
    assert detect(make("safe"), item).annotation.status is Status.FAILED


def test_an_empty_answer_has_no_steps(model_server: ModelServer, make: Make) -> None:
    annotation = detect(make("safe"), ITEM.model_copy(update={"answer": " "})).annotation
    assert (annotation.status, annotation.spans) == (Status.DONE, ())
    assert "no steps" in (annotation.note or "")
    assert model_server.count == 0

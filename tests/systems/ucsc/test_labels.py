"""Spans of `ucsc-*` get the labels that were chosen, by one more call."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from detector_cases import ANSWER, Make, detect

from spanlab.schema import CallsStep, RemarkStep, Status
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say, say_fields

FOUND = {"parts": [{"text": "1989"}, {"text": "Ada Smith"}]}
REVISED = ANSWER.replace("1989", "1889").replace("Ada Smith", "Gustave Eiffel")


def script(*chosen: str) -> Callable[[ModelRequest], ScriptedReply]:
    def reply(ask: ModelRequest) -> ScriptedReply:
        if "[[ ## chosen ## ]]" in ask.text:
            return say_fields(chosen=list(chosen))
        return (
            say_fields(**FOUND) if "[[ ## parts ## ]]" in ask.text else say_fields(revised=REVISED)
        )

    return reply


@pytest.mark.parametrize("detector", ["ucsc-extract", "ucsc-revise"])
def test_every_span_gets_one_label_of_the_set(
    model_server: ModelServer, make: Make, detector: str
) -> None:
    model_server.script(script("Contradiction", "unsupported addition."))
    said = detect(make(detector, options={"labels": "common"})).annotation
    assert {span.label for span in said.spans[:1]} == {"contradiction"}
    assert {span.label for span in said.spans[1:2]} == {"unsupported addition"}
    asked = model_server.requests[-1].text
    assert "- contradiction: The evidence says otherwise." in asked
    assert "1. 1989" in asked
    calls = said.trace[-1]
    assert isinstance(calls, CallsStep)
    assert calls.calls == 2


@pytest.mark.parametrize(
    ("reply", "labels", "got"),
    [
        pytest.param(say_fields(chosen=["date", "size"]), ["date", None], 1, id="unknown"),
        pytest.param(say_fields(chosen=["date"]), ["date", None], 1, id="too-few"),
        pytest.param(say_fields(chosen=["date"] * 3), ["date"] * 2, 2, id="too-many"),
        pytest.param(say("Well."), [None, None], 0, id="unreadable"),
    ],
)
def test_a_span_without_a_label_of_the_set_stays_marked(
    model_server: ModelServer,
    make: Make,
    reply: ScriptedReply,
    labels: list[str | None],
    got: int,
) -> None:
    model_server.script(lambda ask: reply if "chosen" in ask.text else say_fields(**FOUND))
    said = detect(make("ucsc-extract", options={"labels": "date: a wrong date; name"})).annotation
    assert said.status is Status.DONE
    assert [span.label for span in said.spans] == labels
    remarks = [step.text for step in said.trace if isinstance(step, RemarkStep)]
    lost = f"the model chose a label of the set for {got} of 2 spans"
    assert remarks == ([lost] if None in labels else [])


def test_nothing_marked_needs_no_label(model_server: ModelServer, make: Make) -> None:
    model_server.script(lambda ask: say_fields(parts=[]))
    detect(make("ucsc-extract", options={"labels": "common"}))
    assert model_server.count == 1

"""Prompts are dspy's own, word for word, whatever is remembered of them."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from spanlab.lm.adapters import ChatAnswers, JsonAnswers


class Check(dspy.Signature):
    """Check a fact."""

    passages: str = dspy.InputField()
    fact: str = dspy.InputField(desc="the fact")
    rounds: int = dspy.InputField()
    verdict: list[dict[str, str]] = dspy.OutputField(desc="what it is")
    reason: str = dspy.OutputField()


TEXT = {"passages": "[1] It is.\n\n  ", "fact": "[[ ## passages ## ]] is “so”"}
DEMO = {**TEXT, "rounds": 1, "verdict": [{"is": "so"}], "reason": "it is"}

OURS = [
    pytest.param(ChatAnswers(), dspy.ChatAdapter(), id="chat"),
    pytest.param(JsonAnswers(), dspy.JSONAdapter(), id="json"),
]
INPUTS = [
    pytest.param({**TEXT, "rounds": 2}, id="a number among them"),
    pytest.param(TEXT, id="text alone, one missing"),
    pytest.param({**TEXT, "rounds": "2", "unknown": "not shown"}, id="one that is no field"),
    pytest.param({"passages": ["a", "b"], "fact": None, "rounds": {}}, id="no text"),
    pytest.param({}, id="none"),
]


@pytest.mark.parametrize(("ours", "theirs"), OURS)
@pytest.mark.parametrize("inputs", INPUTS)
def test_a_prompt_is_what_dspy_makes_of_it(
    ours: dspy.Adapter, theirs: dspy.Adapter, inputs: dict[str, Any]
) -> None:
    other = Check.with_instructions("Something else.")
    for signature in (Check, other, Check):
        for demos in ([], [DEMO], [dspy.Example(**DEMO)]):
            expected = theirs.format(signature, demos, dict(inputs))
            assert ours.format(signature, demos, dict(inputs)) == expected

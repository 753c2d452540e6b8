"""What a prompt shows: the inputs first, then task, demonstrations and the form of the reply."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from pydantic import BaseModel, Field

from spanlab.lm.adapters import SYSTEM, ChatAnswers, JsonAnswers


class Judged(BaseModel):
    """What is thought first stands first."""

    reason: str = Field(description="why")
    verdict: str


class Check(dspy.Signature):
    """Check a fact.

    Be brief.
    """

    passages: str = dspy.InputField()
    fact: str = dspy.InputField(desc="the fact")
    rounds: int = dspy.InputField()
    judged: list[Judged] = dspy.OutputField(desc="what it is")
    sure: bool = dspy.OutputField()


INPUTS = {"passages": "[1] It is.\n\n[2] So.", "fact": "is “so”", "rounds": 2}
DEMO = {"fact": "old", "judged": [{"verdict": "so", "reason": "it is"}], "sure": True}
SHOWN = """\
[[ ## passages ## ]]
[1] It is.

[2] So.

[[ ## fact ## ]]
is “so”

[[ ## rounds ## ]]
2

# Task

Check a fact.

Be brief.

The inputs above:
- `passages`
- `fact`: the fact
- `rounds`

# Examples

Other inputs, and what is right for them.

[[ ## fact ## ]]
old

The reply:

[[ ## judged ## ]]
[{"reason": "it is", "verdict": "so"}]

[[ ## sure ## ]]
True

[[ ## completed ## ]]

# Reply

Respond with these fields for the inputs at the beginning, each under its marker:
- `[[ ## judged ## ]]` (a JSON list): what it is
  [{"reason": <why>, "verdict": …}, …]
- `[[ ## sure ## ]]`
  {value}        # note: the value you produce must be True or False
Then end with the marker `[[ ## completed ## ]]`."""


def shown(adapter: dspy.Adapter, demos: list[Any], signature: Any = Check) -> str:
    """Return the one message beside the constant one of the system."""
    system, user = adapter.format(signature, demos, dict(INPUTS))
    assert system == {"role": "system", "content": SYSTEM}
    assert user["role"] == "user"
    return str(user["content"])


@pytest.mark.parametrize("demo", [DEMO, dspy.Example(**DEMO)], ids=["dict", "example"])
def test_a_prompt_shows_inputs_task_demonstrations_and_form_in_this_order(demo: Any) -> None:
    assert shown(ChatAnswers(), [demo, {"fact": "no reply"}, {"sure": False}]) == SHOWN


def test_json_is_asked_for_in_its_own_form() -> None:
    prompt = shown(JsonAnswers(), [DEMO])
    assert '"judged": [\n    {\n      "reason": "it is",\n      "verdict": "so"' in prompt
    assert prompt.partition("# Reply\n\n")[2].startswith(
        "Respond with a JSON object for the inputs at the beginning, fields in this order:\n"
        "- `judged` (a JSON list): what it is\n"
    )


def test_what_is_remembered_of_a_prompt_follows_its_instruction_and_demonstrations() -> None:
    adapter, demos = ChatAnswers(), [dict(DEMO)]
    other = Check.with_instructions("Something else.")
    assert "Something else." in shown(adapter, [], other)
    assert shown(adapter, demos) == SHOWN
    demos[0]["fact"] = "new"
    assert shown(adapter, demos) == SHOWN.replace("old", "new")
    assert "Examples" not in shown(adapter, [])

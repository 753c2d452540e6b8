"""What a prompt shows, and in which order."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from pydantic import BaseModel, Field

from spanlab.base.runtime import shared_item
from spanlab.models.adapters import ChatAnswers, JsonAnswers


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
INPUT_TEXT = """\
[[ ## passages ## ]]
[1] It is.

[2] So.

[[ ## fact ## ]]
is “so”

[[ ## rounds ## ]]
2"""
TASK = """\
# Task

Check a fact.

Be brief.

The inputs:
- `passages`
- `fact`: the fact
- `rounds`

# Reply

Respond with these fields for the inputs, each under its marker:
- `[[ ## judged ## ]]` (a JSON list): what it is
  [{"reason": <why>, "verdict": …}, …]
- `[[ ## sure ## ]]`
  {value}        # note: the value you produce must be True or False
Then end with the marker `[[ ## completed ## ]]`."""
DEMO_INPUT = """\
[[ ## fact ## ]]
old"""
DEMO_REPLY = """\
[[ ## judged ## ]]
[{"reason": "it is", "verdict": "so"}]

[[ ## sure ## ]]
True

[[ ## completed ## ]]"""


def shown(adapter: dspy.Adapter, demos: list[Any], signature: Any = Check) -> str:
    """Return the system message, which has the task, and check that the inputs come last."""
    system, *turns, user = adapter.format(signature, demos, dict(INPUTS))
    assert (system["role"], user["role"]) == ("system", "user")
    assert len(turns) % 2 == 0
    return str(system["content"])


@pytest.mark.parametrize("demo", [DEMO, dspy.Example(**DEMO)], ids=["dict", "example"])
def test_a_prompt_has_the_task_first_then_demonstrations_as_turns_then_the_inputs(
    demo: Any,
) -> None:
    demos = [demo, {"fact": "no reply"}, {"sure": False}]
    system, asked, replied, user = ChatAnswers().format(Check, demos, dict(INPUTS))
    assert str(system["content"]).endswith(f"\n\n{TASK}")
    assert asked == {"role": "user", "content": DEMO_INPUT}
    assert replied == {"role": "assistant", "content": DEMO_REPLY}
    assert user == {"role": "user", "content": INPUT_TEXT}


def test_inputs_that_several_tasks_share_stand_first_where_they_are_longer() -> None:
    long = {**INPUTS, "passages": "[1] It is. " * 200}
    with shared_item(is_shared=True):
        short = ChatAnswers().format(Check, [DEMO], dict(INPUTS))
        system, user = ChatAnswers().format(Check, [DEMO], long)
    assert str(short[-1]["content"]) == INPUT_TEXT
    assert "shows its inputs first" in system["content"]
    assert user["content"].startswith("[[ ## passages ## ]]\n[1] It is.")
    assert f"{TASK}\n\n# Examples\n\n" in user["content"]
    assert user["content"].endswith(f"{DEMO_INPUT}\n\nThe reply:\n\n{DEMO_REPLY}")
    assert len(ChatAnswers().format(Check, [], long)) == 2  # alone, the task is first again
    assert "Here is a task" in ChatAnswers().format(Check, [], long)[0]["content"]


def test_json_is_asked_for_in_its_own_form() -> None:
    prompt = shown(JsonAnswers(), [DEMO])
    assert prompt.partition("# Reply\n\n")[2].startswith(
        "Respond with a JSON object for the inputs, with these fields in this order:\n"
        "- `judged` (a JSON list): what it is\n"
    )


def test_what_is_remembered_of_a_prompt_follows_its_instruction_and_demonstrations() -> None:
    adapter, demos = ChatAnswers(), [dict(DEMO)]
    other = Check.with_instructions("Something else.")
    assert "Something else." in shown(adapter, [], other)
    assert shown(adapter, demos).endswith(TASK)
    demos[0]["fact"] = "new"
    asked = adapter.format(Check, demos, dict(INPUTS))[1]
    assert asked["content"] == DEMO_INPUT.replace("old", "new")
    assert len(adapter.format(Check, [], dict(INPUTS))) == 2

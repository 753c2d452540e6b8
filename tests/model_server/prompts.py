"""What a detector asks a model, in one order: the inputs, the task, the form of the reply."""

from __future__ import annotations

import re

from spanlab.testing import ModelRequest

TASK = "# Task\n"
_SECTION = re.compile(r"^\[\[ ## \w+ ## \]\]$", re.MULTILINE)


def prompt_of(ask: ModelRequest) -> str:
    """Return the inputs of a request and the task behind them, wherever the task stands."""
    if not ask.messages:
        return ""
    last = str(ask.messages[-1]["content"])
    before, mark, task = last.partition(TASK)
    if not mark:
        _, mark, task = str(ask.messages[0]["content"]).partition(TASK)
        return f"{last}\n\n{mark}{task}"
    inputs = _SECTION.search(task)
    if _SECTION.search(before) or inputs is None:  # the inputs stand first
        return last
    return f"{task[inputs.start() :]}\n\n{mark}{task[: inputs.start()]}"  # all in one message


def demonstrations(ask: ModelRequest) -> int:
    """Return how many demonstrations a request has, as turns or in its one message."""
    turns = [message for message in ask.messages if message["role"] == "assistant"]
    return len(turns) + ask.text.count("\nThe reply:\n")

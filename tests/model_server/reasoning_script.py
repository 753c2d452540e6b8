"""A scripted generator and verifier for reasoning, told apart by what a prompt asks for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from prompts import TASK, prompt_of

from spanlab.testing import ModelRequest, ScriptedReply, say_fields

RIGHT: Mapping[str, object] = {"diagnosis": "It adds a fact.", "errors": [], "guidance": "Go on."}
_SECTION = re.compile(r"^\[\[ ## (\w+) ## \]\]\n", re.MULTILINE)


def inputs(ask: ModelRequest) -> dict[str, str]:
    """Return the input fields that a prompt shows after its task."""
    pieces = _SECTION.split(prompt_of(ask).partition(TASK)[0])[1:]
    return {name: text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


class ReasoningScript:
    """Takes steps in turn for each question, and says what is wrong with some.

    Args:
        steps: what the generator says, by the question or "" for all others; the last one stays.
        wrong: by words of a step, what the verifier says of it; all others are right.
    """

    def __init__(
        self, steps: Mapping[str, Sequence[str]], wrong: Mapping[str, Mapping[str, object]] = {}
    ) -> None:
        self._steps, self._wrong = steps, wrong
        self._taken: dict[str, int] = defaultdict(int)
        self.asked: list[dict[str, str]] = []  # what the generator was shown
        self.verified: list[str] = []

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        given = inputs(ask)
        if "judged" in prompt_of(ask).rpartition("# Reply")[2]:
            return say_fields(judged={"reason": "so", "answer": "incorrect"})
        if "[[ ## ruling ## ]]" in ask.text or "`ruling`" in ask.text:
            last = given["steps"].splitlines()[-1]
            self.verified.append(last)
            said = next((each for words, each in self._wrong.items() if words in last), {})
            return say_fields(ruling={**RIGHT, **said})
        if "feedback" not in given:
            return say_fields(step="####ANSWER: forced (Final Answer)")
        self.asked.append(given)
        steps = self._steps.get(given["question"], self._steps.get("", ()))
        at = self._taken[given["question"]]
        self._taken[given["question"]] += 1
        return say_fields(step=steps[min(at, len(steps) - 1)])

"""A scripted model that answers all prompts of VeriTrail, and a process for it to walk."""

from __future__ import annotations

import re
from typing import Any

from detector_cases import ANSWER, TOWER
from prompts import prompt_of

from spanlab.schema import Process, ProcessNode
from spanlab.testing import ModelRequest, ScriptedReply, say_fields

BUILT = "The tower was built in 1989."
BUILDER = "The tower was built by Ada Smith."
PLACE = "The tower is in Paris."
TRUE = "The tower was built in 1889"  # how every text that says so begins

SUMMARISED = TOWER.model_copy(
    update={
        "passages": (),
        "process": Process(
            nodes=(
                ProcessNode(id="chapter 1", text=f"Trees are green. {TRUE}.", stage="chapter"),
                ProcessNode(id="chapter 2", text="Paris is a city.", stage="chapter"),
                ProcessNode(
                    id="summary 1",
                    text="On trees. The tower was built in 1989.",
                    stage="summary",
                    sources=("chapter 1",),
                ),
                ProcessNode(
                    id="summary 2", text="On Paris.", stage="summary", sources=("chapter 2",)
                ),
                ProcessNode(
                    id="end", text=ANSWER, stage="answer", sources=("summary 1", "summary 2")
                ),
            )
        ),
    }
)


def field(prompt: str, name: str) -> str:
    found = re.search(rf"\[\[ ## {name} ## \]\]\n(.*?)\n\n(?:\[\[|# Task)", prompt, re.DOTALL)
    assert found, f"{name} in {prompt}"
    return found[1]


class TrailAnswers:
    """Answers all prompts of the system, by what the texts say of the year."""

    def __init__(self, claims: tuple[str, ...] = (BUILT, BUILDER, PLACE), **changes: Any) -> None:
        self.claims, self.changes = claims, changes
        self.selected: list[str] = []
        self.judged: list[str] = []

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        prompt = prompt_of(ask)
        if "`[[ ## verifiable ## ]]`" in prompt:
            kept = self.changes.get("verifiable", field(prompt, "sentence"))
            return say_fields(reason="it states facts", verifiable=kept)
        if "`[[ ## resolved ## ]]`" in prompt:
            return say_fields(reason="all is clear", resolved=field(prompt, "sentence"))
        if "`[[ ## claims ## ]]`" in prompt:
            sentence = field(prompt, "sentence")
            return say_fields(claims=list(self.claims) if sentence == ANSWER else [sentence])
        if "`[[ ## words ## ]]`" in prompt:
            year = BUILT in field(prompt, "claim")
            return say_fields(words=["1989"] if year else ["Ada Smith"])
        if "`[[ ## chosen ## ]]`" in prompt:
            return self.choose(prompt)
        return self.rule(prompt)

    def choose(self, prompt: str) -> ScriptedReply:
        shown, claim = field(prompt, "sentences"), field(prompt, "claim")
        self.selected.append(shown)
        about = "Paris" if claim == PLACE else "The tower was built"
        lines = [line for line in shown.splitlines() if about in line]
        numbers = [re.match(r"\[(\d+)\]", line)[1] for line in lines]  # type: ignore[index]
        return say_fields(chosen=[*numbers, "99"] if numbers else [], summary=" ".join(lines))

    def rule(self, prompt: str) -> ScriptedReply:
        evidence, claim = field(prompt, "evidence"), field(prompt, "claim")
        self.judged.append(evidence)
        true = claim == PLACE or (claim == BUILT and "1989" in evidence)
        verdict = "Supported" if true else "Not Supported"
        return say_fields(ruling={"reason": "so the texts say", "verdict": verdict})

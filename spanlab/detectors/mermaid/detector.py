"""MERMAID: an agent with tools, and a memory of evidence that spares it searches.

Cao et al. 2026, "MERMAID: Memory-Enhanced Retrieval and Reasoning with Multi-Agent Iterative
Knowledge Grounding for Veracity Assessment". How it works:

1. **Claims** (``claims.extraction``): the answer is taken apart, or is one claim.
2. **Decomposer**: the claim as triplets (subject, relation, object, attributes) and topics.
3. **Executor** (``executor``, algorithm 1): thought, call of a tool, observation, at most five
   times; it answers as soon as the evidence is enough, and in the end it has to.
4. **Spans** (``claims.placing``): the words of the answer that state what is refuted.

Published, with GPT-4o: macro F1 .80, .77 and .77 on FacTool-QA, BingCheck and FactCheck-Bench;
without the decomposer .03 less.

Deviations. The prompts are our own. A claim has a verdict, not True or False, and may have one of
four. A call that was made before is answered from the history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import dspy
from pydantic import JsonValue

from spanlab.detectors.common.claiming import ClaimDetector, ClaimProgram, Verified
from spanlab.detectors.common.dated import about, published_before
from spanlab.detectors.common.modelled import Case
from spanlab.detectors.common.selection import joined as joined_pieces
from spanlab.detectors.common.selection import select
from spanlab.detectors.kit import Kit
from spanlab.detectors.mermaid.entry import MermaidOptions
from spanlab.detectors.mermaid.evidence import relevant
from spanlab.detectors.mermaid.executor import (
    Action,
    Execution,
    Failure,
    Thought,
    Turn,
    execute,
)
from spanlab.detectors.mermaid.prompts import (
    DecideNextStep,
    DecideNextStepOfFour,
    DecomposeClaim,
    Decomposition,
    JudgeByHistory,
    JudgeByHistoryOfFour,
)
from spanlab.detectors.mermaid.tools import own_tools
from spanlab.passages import joined, merged
from spanlab.schema import Evidence, Passage, Retrieval, Stance, Verdict
from spanlab.tools import Toolbox, asked
from spanlab.trace import RemarkStep, Step, ThoughtStep

_SHOWN: Final = 4_000  # characters of an observation in the prompt
_QUOTED: Final = 8  # pieces of evidence of a claim at most
NOTHING: Final = "Nothing was found."
_STANCES: Final[dict[Verdict, Stance]] = {"supported": "supports", "refuted": "refutes"}


@dataclass(frozen=True)
class Seen:
    """An observation: the item's passages that a call brought, by 0-based index."""

    passages: tuple[int, ...]


class MermaidProgram(ClaimProgram):
    """The model's parts: extraction, decomposer, executor, forced answer, wrong words."""

    def __init__(self, options: MermaidOptions) -> None:
        super().__init__()
        four = options.classes == 4
        self.decompose = dspy.Predict(DecomposeClaim)
        self.think = dspy.Predict(DecideNextStepOfFour if four else DecideNextStep)
        self.judge = dspy.Predict(JudgeByHistoryOfFour if four else JudgeByHistory)


class Mermaid(ClaimDetector):
    """Gathers evidence for claims with tools, step by step."""

    program: MermaidProgram

    def __init__(self, kit: Kit) -> None:
        self.options = MermaidOptions.model_validate(kit.spec.options)
        program = MermaidProgram(self.options)
        super().__init__(kit, program, guided="think", whole=self.options.claims == "answer")

    async def prepare(self, case: Case) -> None:
        """Search for nothing yet: the agent does, where it has to."""

    async def verify(self, case: Case, number: int, claim: str) -> Verified:
        """Gather evidence for one claim and judge it."""
        inquiry = _Inquiry(self, case, claim)
        found = await inquiry.run()
        return Verified(
            verdict=found.answer,
            reason=inquiry.reason or found.thought,
            evidence=inquiry.evidence(found),
            steps=tuple(inquiry.steps(found, number)),
        )


class _Inquiry:
    """Asks the models and calls the tools about one claim."""

    def __init__(self, detector: Mermaid, case: Case, claim: str) -> None:
        self._detector, self._case, self._claim = detector, case, claim
        self._about = about(case.item, claim)
        self._tools = Toolbox(own_tools(detector.kit, case, published_before(case.item)))
        self._parts: Decomposition | None = None
        self.reason = ""

    async def run(self) -> Execution[Verdict, Seen]:
        """Take the claim apart, and gather evidence until it is judged."""
        detector = self._detector
        if detector.options.decompose:
            said = await detector.ask(detector.program.decompose, claim=self._about)
            self._parts = said.decomposition
        return await execute(
            self._claim,
            think=self._think,
            call=self._call,
            steps=detector.options.steps,
            conclude=self._conclude,
        )

    @property
    def _entities(self) -> tuple[str, ...]:
        return self._parts.entities if self._parts is not None else ()

    async def _think(
        self, _claim: str, recalled: Sequence[int], history: Sequence[Turn[Seen]], left: int
    ) -> Thought[Verdict]:
        said = await self._detector.ask(
            self._detector.program.think,
            None,
            **self._inputs(recalled, history),
            tools=self._tools.described() or "none",
            left=left,
        )
        step = said.step
        action = None if step.action is None else Action(step.action.tool, step.action.arguments)
        two = self._detector.options.classes == 2
        undecided = two and step.answer not in {"supported", "refuted"}
        return Thought(step.thought, action, None if undecided else step.answer)

    async def _conclude(
        self, _claim: str, recalled: Sequence[int], history: Sequence[Turn[Seen]]
    ) -> Verdict:
        program = self._detector.program
        said = await self._detector.ask(program.judge, None, **self._inputs(recalled, history))
        self.reason = said.ruling.reason
        verdict: Verdict = said.ruling.verdict
        return verdict

    def _inputs(self, recalled: Sequence[int], history: Sequence[Turn[Seen]]) -> dict[str, object]:
        return {
            "claim": self._about,
            "background": _background(self._parts),
            "known": self._listed(recalled) or "nothing",
            "history": self._told(history) or "no steps yet",
        }

    async def _call(self, name: str, arguments: Mapping[str, JsonValue]) -> Seen:
        found = await self._tools.call(name, arguments)
        tool = self._tools.tools[name]
        return Seen(self._noted(tool.source or name, asked(tool, arguments), found))

    def _noted(self, retriever: str, query: str, found: Sequence[Passage]) -> tuple[int, ...]:
        """Note with the item what was asked and found; return where it stands there."""
        bare = self._case.item.model_copy(update={"retrievals": ()})
        more = joined(bare, Retrieval(retriever=retriever, query=query, queries=(query,)), found)
        self._case.item = merged(self._case.item, more).item
        return more.retrievals[-1].passages

    def _told(self, history: Sequence[Turn[Seen]]) -> str:
        return "\n\n".join(
            f"Step {number}\nThought: {turn.thought}\n{self._observed(turn)}"
            for number, turn in enumerate(history, start=1)
        )

    def _observed(self, turn: Turn[Seen]) -> str:
        if turn.action is None:
            return "No tool was called, and no answer given."
        called = json.dumps(dict(turn.action.arguments), ensure_ascii=False)
        if turn.repeats is not None:
            observed = f"the same call as in step {turn.repeats}: see there, and do something else"
        elif isinstance(turn.observation, Seen):
            observed = self._listed(turn.observation.passages) or NOTHING
        else:
            observed = f"failed: {turn.observation}"
        return f"Call: {turn.action.tool} {called}\nObservation: {observed}"

    def _listed(self, indices: Sequence[int]) -> str:
        """Show passages as prompts do; of long ones the pieces that come closest to the claim."""
        passages = [self._case.item.passages[index] for index in indices]
        heads = [
            f"[{index + 1}]{_source(passage)}"
            for index, passage in zip(indices, passages, strict=True)
        ]
        texts = tuple(passage.text for passage in passages)
        found = select(texts, tuple(map(len, heads)), self._claim, _SHOWN)
        parts: dict[int, list[str]] = {}
        for number, head in enumerate(heads):
            pieces = [piece for piece in found.chosen if piece.text == number]
            if pieces:
                parts[number] = [head, joined_pieces(pieces, found.counts[number])]
        return "\n\n".join("\n".join(each) for each in parts.values())

    def evidence(self, found: Execution[Verdict, Seen]) -> tuple[Evidence, ...]:
        """Quote the sentences of what was observed that speak of the claim."""
        stance, item = _STANCES.get(found.answer, "closest"), self._case.item
        seen = dict.fromkeys(
            index
            for turn in found.history
            if isinstance(turn.observation, Seen)
            for index in turn.observation.passages
        )
        quotes = [
            Evidence(
                passage=index,
                start=place.start,
                end=place.end,
                text=item.passages[index].text[slice(*place)],
                stance=stance,
            )
            for index in seen
            for place in relevant(item.passages[index].text, self._claim, self._entities, item.lang)
        ]
        return tuple(quotes[:_QUOTED])

    def steps(self, found: Execution[Verdict, Seen], claim: int) -> list[Step]:
        """Tell what was thought, called and observed, for the trace."""
        told: list[Step] = []
        if self._parts is not None:
            told.append(RemarkStep(text=f"taken apart: {_background(self._parts)}", claim=claim))
        for number, turn in enumerate(found.history, start=1):
            seen = turn.observation
            told.append(
                ThoughtStep(
                    text=turn.thought,
                    tool=turn.action.tool[:200] or None if turn.action else None,
                    arguments=dict(turn.action.arguments) if turn.action else {},
                    passages=seen.passages if isinstance(seen, Seen) else (),
                    failure=seen.reason if isinstance(seen, Failure) else None,
                    repeats=turn.repeats,
                    claim=claim,
                    round=number,
                )
            )
        last = "the steps were used up: an answer was forced" if found.forced else found.thought
        told.append(ThoughtStep(text=last, claim=claim, round=len(found.history) + 1))
        return told


def _background(parts: Decomposition | None) -> str:
    if parts is None:
        return "nothing"
    triplets = [
        " · ".join(
            filter(None, (each.subject, each.relation, each.object, ", ".join(each.attributes)))
        )
        for each in parts.triplets
    ]
    topics = f"topics: {', '.join(parts.topics)}" if parts.topics else ""
    return "; ".join(filter(None, (*triplets, topics))) or "nothing"


def _source(passage: Passage) -> str:
    about_it = ", ".join(filter(None, (passage.title, passage.url, passage.date)))
    return f" ({about_it})" if about_it else ""

"""One claim: asked, tools called, evidence recalled; its steps for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import dspy
from pydantic import JsonValue

from spanlab.base.inbound import ABOUT, one_line
from spanlab.detection.common.claim_detector import ClaimProgram
from spanlab.detection.common.context import joined as joined_pieces
from spanlab.detection.common.context import select
from spanlab.detection.common.evidence import (
    GIVEN,
    ClaimMemory,
    ObservedPassage,
    about,
    noted,
    published_before,
    quote,
    relevant,
    stance_of,
)
from spanlab.detection.common.model_detector import DetectionCase, ModelDetector
from spanlab.detection.entities import names_of
from spanlab.detection.memory import EvidenceMemory
from spanlab.schema import Evidence, Item, Passage, RemarkStep, Step, Verdict
from spanlab.search.base import SearchQuery
from spanlab.systems.mermaid import MermaidOptions
from spanlab.systems.mermaid.executor import (
    AgentRun,
    AgentThought,
    AgentTurn,
    FailedCall,
    ToolAction,
    execute,
)
from spanlab.systems.mermaid.prompts import (
    DecideNextStep,
    DecideNextStepOfFour,
    DecomposeClaim,
    Decomposition,
    JudgeByHistory,
    JudgeByHistoryOfFour,
)
from spanlab.systems.mermaid.trace import ThoughtStep
from spanlab.tools import Tool, Toolbox, query_text
from spanlab.tools.toolbox import OfItem

_SHOWN: Final = 4_000  # characters of an observation in the prompt
WIKI: Final = "wikipedia"  # the kind of source whose titles may lead to another one
NOTHING: Final = "Nothing was found."


class MermaidProgram(ClaimProgram):
    """The model's parts: extraction, decomposer, executor, forced answer, wrong words."""

    def __init__(self, options: MermaidOptions) -> None:
        super().__init__()
        four = options.classes == 4
        self.decompose = dspy.Predict(DecomposeClaim)
        self.think = dspy.Predict(DecideNextStepOfFour if four else DecideNextStep)
        self.judge = dspy.Predict(JudgeByHistoryOfFour if four else JudgeByHistory)


@dataclass(frozen=True)
class InquiryTools:
    """What a claim is judged with; ``tools`` are the run's own and those of servers."""

    options: MermaidOptions
    memory: EvidenceMemory
    tools: tuple[Tool, ...] = ()


class ClaimInquiry:
    """Asks the models and calls the tools about one claim."""

    def __init__(
        self, detector: ModelDetector, case: DetectionCase, claim: str, means: InquiryTools
    ) -> None:
        self._detector, self._options, self._memory = detector, means.options, means.memory
        self._program: MermaidProgram = detector.program
        self.case, self.claim = case, claim
        self._about = about(case.item, claim)
        self._before = published_before(case.item)
        of_item: dict[OfItem, str] = {"language": case.item.lang}
        if self._before is not None:
            of_item["before"] = self._before.isoformat()
        self._tools = Toolbox(means.tools, of_item, detector.kit.meter)
        self.parts: Decomposition | None = None
        self.known = ClaimMemory(means.memory, detector, case, claim)
        self.reason = ""

    async def take_apart(self) -> None:
        """Ask what the claim states, unless that is not wanted."""
        if self._options.decompose:
            prediction = await self._detector.ask(self._program.decompose, claim=self._about)
            self.parts = prediction.decomposition

    async def recall(self) -> None:
        """Let the item have what the memory holds about the claim's entities.

        Where nobody has said which these are, they are the names in the claim.
        """
        stated = self.parts.entities if self.parts is not None else ()
        await self.known.recall(stated or names_of(self.claim), self._before)

    async def run(self) -> ClaimTrajectory:
        """Gather evidence until the claim is judged, and keep what is worth keeping."""
        agent_run = await execute(
            self.claim,
            think=self._think,
            call=self._call,
            recalled=tuple(self.known.notes),
            steps=self._options.steps,
            conclude=self._conclude,
        )
        await self.known.keep(self._observed_anew(agent_run))
        return ClaimTrajectory(self.claim, self.parts, self.known, agent_run)

    def _observed_anew(
        self, agent_run: AgentRun[Verdict, ToolObservation]
    ) -> Iterator[ObservedPassage]:
        """Yield the passages that new calls brought."""
        for turn in agent_run.history:
            seen = passages_of(turn)
            if turn.action is not None and turn.repeats is None and seen:
                tool = self._tools.tools[turn.action.tool]
                query = query_text(tool, turn.action.arguments)
                for index in seen:
                    yield ObservedPassage(
                        self.case.item.passages[index], query, tool.name, tool.kind
                    )

    async def _think(
        self,
        _claim: str,
        recalled: Sequence[int],
        history: Sequence[AgentTurn[ToolObservation]],
        left: int,
    ) -> AgentThought[Verdict]:
        prediction = await self._detector.ask(
            self._program.think,
            None,
            **self._inputs(recalled, history),
            tools=self._tools.described() or "none",
            left=left,
        )
        step = prediction.step
        action = (
            None if step.action is None else ToolAction(step.action.tool, step.action.arguments)
        )
        two = self._options.classes == 2
        undecided = two and step.answer not in {"supported", "refuted"}
        return AgentThought(step.thought, action, None if undecided else step.answer)

    async def _conclude(
        self, _claim: str, recalled: Sequence[int], history: Sequence[AgentTurn[ToolObservation]]
    ) -> Verdict:
        prediction = await self._detector.ask(
            self._program.judge, None, **self._inputs(recalled, history)
        )
        self.reason = prediction.ruling.reason
        verdict: Verdict = prediction.ruling.verdict
        return verdict

    def _inputs(
        self, recalled: Sequence[int], history: Sequence[AgentTurn[ToolObservation]]
    ) -> dict[str, object]:
        return {
            "claim": self._about,
            "background": background(self.parts),
            "known": self._listed(recalled) or "nothing",
            "history": self._show_history(history) or "no steps yet",
        }

    async def _call(self, name: str, arguments: Mapping[str, JsonValue]) -> ToolObservation:
        tool = self._tools.checked(name, arguments)
        query = query_text(tool, arguments)
        if tool.kind == GIVEN:  # of another item the same call finds something else
            return ToolObservation(
                noted(self.case, tool.name, query, await self._tools.call(name, arguments))
            )
        about_it = [tool.name, tool.source, query, self.case.item.lang, str(self._before)]
        passages = await self._memory.once(
            about_it,
            lambda: self._tools.call(name, arguments),
            kind=tool.kind,
            seconds=tool.seconds,
        )
        asked_for = SearchQuery(query, before=self._before)
        passages = tuple(filter(asked_for.admits, passages))
        if tool.kind == WIKI and passages and isinstance(title := arguments.get("title"), str):
            await self._memory.learn(title, passages[0].title or title)
        return ToolObservation(noted(self.case, tool.source or name, query, passages))

    def _show_history(self, history: Sequence[AgentTurn[ToolObservation]]) -> str:
        return "\n\n".join(
            f"Step {number}\nThought: {turn.thought}\n{self._observed(turn)}"
            for number, turn in enumerate(history, start=1)
        )

    def _observed(self, turn: AgentTurn[ToolObservation]) -> str:
        if turn.action is None:
            return "No tool was called, and no answer given."
        called = json.dumps(dict(turn.action.arguments), ensure_ascii=False)
        if turn.repeats is not None:
            observed = f"the same call as in step {turn.repeats}: see there, and do something else"
        elif isinstance(turn.observation, ToolObservation):
            observed = self._listed(turn.observation.passages) or NOTHING
        else:
            observed = f"failed: {turn.observation}"
        return f"Call: {turn.action.tool} {called}\nObservation: {observed}"

    def _listed(self, indices: Sequence[int]) -> str:
        """Show passages as prompts do; of long ones the pieces that come closest to the claim."""
        passages = [self.case.item.passages[index] for index in indices]
        heads = [
            f"[{index + 1}]{_source(passage, self.known.notes.get(index))}"
            for index, passage in zip(indices, passages, strict=True)
        ]
        texts = tuple(passage.text for passage in passages)
        choice = select(texts, tuple(map(len, heads)), self.claim, _SHOWN)
        parts: dict[int, list[str]] = {}
        for number, head in enumerate(heads):
            pieces = [piece for piece in choice.chosen if piece.text == number]
            if pieces:
                parts[number] = [head, joined_pieces(pieces, choice.counts[number])]
        return "\n\n".join("\n".join(part) for part in parts.values())


def _source(passage: Passage, note: str | None) -> str:
    facts = (passage.title, passage.url, passage.date, note)
    about_it = one_line(", ".join(filter(None, facts)), ABOUT)
    return f" ({about_it})" if about_it else ""


_QUOTED: Final = 8  # pieces of evidence of a claim at most


@dataclass(frozen=True)
class ToolObservation:
    """An observation: the item's passages that a call brought, by 0-based index."""

    passages: tuple[int, ...]


@dataclass(frozen=True)
class ClaimTrajectory:
    """A claim, what it states, what was remembered of it, and how it was judged."""

    claim: str
    parts: Decomposition | None
    known: ClaimMemory
    execution: AgentRun[Verdict, ToolObservation]

    def evidence(self, item: Item) -> tuple[Evidence, ...]:
        """Quote the sentences of what was recalled and observed that speak of the claim."""
        stance = stance_of(self.execution.answer)
        notes, entities = self.known.notes, self.known.entities
        observed = (index for turn in self.execution.history for index in passages_of(turn))
        quotes = [
            quote(item, index, place, stance, notes.get(index))
            for index in dict.fromkeys((*notes, *observed))
            for place in relevant(item.passages[index].text, self.claim, entities, item.lang)
        ]
        return tuple(quotes[:_QUOTED])

    def steps(self, number: int) -> list[Step]:
        """Tell what was stated, recalled, thought, called and observed of claim ``number``."""
        steps: list[Step] = []
        if self.parts is not None:
            steps.append(RemarkStep(text=f"taken apart: {background(self.parts)}", claim=number))
        steps += self.known.steps(number)
        history = self.execution.history
        steps += [_step(turn, number, at) for at, turn in enumerate(history, start=1)]
        forced = "the steps were used up: an answer was forced"
        last = forced if self.execution.forced else self.execution.thought
        return [*steps, ThoughtStep(text=last, claim=number, round=len(history) + 1)]


def passages_of(turn: AgentTurn[ToolObservation]) -> Sequence[int]:
    """Return the indices of the passages that a step brought; empty if it brought none."""
    return turn.observation.passages if isinstance(turn.observation, ToolObservation) else ()


def background(parts: Decomposition | None) -> str:
    """Return what a claim states in one line."""
    if parts is None:
        return "nothing"
    triplets = [
        " · ".join(
            filter(
                None,
                (triplet.subject, triplet.relation, triplet.object, ", ".join(triplet.attributes)),
            )
        )
        for triplet in parts.triplets
    ]
    topics = f"topics: {', '.join(parts.topics)}" if parts.topics else ""
    return "; ".join(filter(None, (*triplets, topics))) or "nothing"


def _step(turn: AgentTurn[ToolObservation], claim: int, at: int) -> ThoughtStep:
    called = turn.action.tool if turn.action else ""
    return ThoughtStep(
        text=turn.thought,
        tool="".join(filter(str.isprintable, called))[:200] or None,
        arguments=dict(turn.action.arguments) if turn.action else {},
        passages=tuple(passages_of(turn)),
        failure=str(turn.observation) if isinstance(turn.observation, FailedCall) else None,
        repeats=turn.repeats,
        claim=claim,
        round=at,
    )

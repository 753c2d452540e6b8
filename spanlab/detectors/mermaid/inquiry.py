"""What MERMAID asks, calls, recalls and keeps for one claim."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import dspy
from pydantic import JsonValue

from spanlab.detectors.common.claiming import ClaimProgram
from spanlab.detectors.common.dated import about, published_before
from spanlab.detectors.common.modelled import Case, Modelled
from spanlab.detectors.common.selection import joined as joined_pieces
from spanlab.detectors.common.selection import select
from spanlab.detectors.mermaid.entry import MermaidOptions
from spanlab.detectors.mermaid.evidence import relevant
from spanlab.detectors.mermaid.executor import Action, Execution, Thought, Turn, execute
from spanlab.detectors.mermaid.prompts import (
    DecideNextStep,
    DecideNextStepOfFour,
    DecomposeClaim,
    Decomposition,
    JudgeByHistory,
    JudgeByHistoryOfFour,
)
from spanlab.detectors.mermaid.tools import GIVEN, own_tools
from spanlab.detectors.mermaid.trajectory import Seen, Trajectory, background, passages_of
from spanlab.memory import Memory, MemoryEntry, expires, passage_of
from spanlab.passages import joined, merged
from spanlab.schema import Passage, Retrieval, Verdict
from spanlab.tools import Tool, Toolbox, asked

_SHOWN: Final = 4_000  # characters of an observation in the prompt
_QUERY: Final = 500  # characters of a query that are kept with what it found
MEMORY: Final = "memory"  # the retriever that what was recalled is noted under
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
class Means:
    """What all claims of a run are judged with; ``tools`` are those of servers."""

    options: MermaidOptions
    memory: Memory
    tools: tuple[Tool, ...] = ()


class Inquiry:
    """Asks the models and calls the tools about one claim."""

    def __init__(self, detector: Modelled, case: Case, claim: str, means: Means) -> None:
        self._detector, self._options, self._memory = detector, means.options, means.memory
        self._program: MermaidProgram = detector.program
        self.case, self.claim = case, claim
        self._about = about(case.item, claim)
        self._before = published_before(case.item)
        self._tools = Toolbox([*own_tools(detector.kit, case, self._before), *means.tools])
        self.parts: Decomposition | None = None
        self.notes: dict[int, str] = {}
        self.reason = ""

    async def take_apart(self) -> None:
        """Ask what the claim states, unless that is not wanted."""
        if self._options.decompose:
            said = await self._detector.ask(self._program.decompose, claim=self._about)
            self.parts = said.decomposition

    async def recall(self) -> None:
        """Let the item have what the memory holds about the claim's entities."""
        known = await self._memory.recall(self.entities, self.claim, self._before)
        if known:
            places = self._noted(MEMORY, self.claim, [passage_of(each) for each in known])
            self.notes = dict(zip(places, map(_told_by, known), strict=False))

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return the block in which others that ask about the same wait."""
        return self._memory.turn(self.entities)

    async def run(self) -> Trajectory:
        """Gather evidence until the claim is judged, and keep what is worth keeping."""
        found = await execute(
            self.claim,
            think=self._think,
            call=self._call,
            recalled=tuple(self.notes),
            steps=self._options.steps,
            conclude=self._conclude,
        )
        await self._memory.keep(self.entities, self._kept(found))
        return Trajectory(self.claim, self.parts, self.notes, found)

    def _kept(self, found: Execution[Verdict, Seen]) -> list[MemoryEntry]:
        """Return the sentences that new calls brought and that speak of the claim."""
        return [
            entry
            for turn in found.history
            if turn.action is not None and turn.repeats is None
            for index in passages_of(turn)
            if (entry := self._entry(turn.action, self.case.item.passages[index])) is not None
        ]

    def _entry(self, action: Action, passage: Passage) -> MemoryEntry | None:
        tool, now = self._tools.tools[action.tool], time.time()
        places = relevant(passage.text, self.claim, self.entities, self.case.item.lang)
        if tool.kind == GIVEN or not places:
            return None
        return MemoryEntry(
            text=" ".join(passage.text[slice(*place)].strip() for place in places),
            title=passage.title,
            url=passage.url,
            date=passage.date,
            query=asked(tool, action.arguments)[:_QUERY],
            tool=tool.name,
            kind=tool.kind,
            model=self._detector.kit.lm().model,
            at=now,
            expires=expires(tool.kind, now),
        )

    @property
    def entities(self) -> tuple[str, ...]:
        """Subjects and objects of the claim; empty if it was not taken apart."""
        return self.parts.entities if self.parts is not None else ()

    async def _think(
        self, _claim: str, recalled: Sequence[int], history: Sequence[Turn[Seen]], left: int
    ) -> Thought[Verdict]:
        said = await self._detector.ask(
            self._program.think,
            None,
            **self._inputs(recalled, history),
            tools=self._tools.described() or "none",
            left=left,
        )
        step = said.step
        action = None if step.action is None else Action(step.action.tool, step.action.arguments)
        two = self._options.classes == 2
        undecided = two and step.answer not in {"supported", "refuted"}
        return Thought(step.thought, action, None if undecided else step.answer)

    async def _conclude(
        self, _claim: str, recalled: Sequence[int], history: Sequence[Turn[Seen]]
    ) -> Verdict:
        said = await self._detector.ask(
            self._program.judge, None, **self._inputs(recalled, history)
        )
        self.reason = said.ruling.reason
        verdict: Verdict = said.ruling.verdict
        return verdict

    def _inputs(self, recalled: Sequence[int], history: Sequence[Turn[Seen]]) -> dict[str, object]:
        return {
            "claim": self._about,
            "background": background(self.parts),
            "known": self._listed(recalled) or "nothing",
            "history": self._told(history) or "no steps yet",
        }

    async def _call(self, name: str, arguments: Mapping[str, JsonValue]) -> Seen:
        tool = self._tools.checked(name, arguments)
        query = asked(tool, arguments)
        if tool.kind == GIVEN:  # of another item the same call finds something else
            return Seen(self._noted(tool.name, query, await self._tools.call(name, arguments)))
        about_it = [tool.name, tool.source, query, self.case.item.lang, str(self._before)]
        found = await self._memory.once(
            about_it,
            lambda: self._tools.call(name, arguments),
            kind=tool.kind,
            seconds=tool.seconds,
        )
        return Seen(self._noted(tool.source or name, query, found))

    def _noted(self, retriever: str, query: str, found: Sequence[Passage]) -> tuple[int, ...]:
        """Note with the item what was asked and found; return where it stands there."""
        bare = self.case.item.model_copy(update={"retrievals": ()})
        more = joined(bare, Retrieval(retriever=retriever, query=query, queries=(query,)), found)
        self.case.item = merged(self.case.item, more).item
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
        passages = [self.case.item.passages[index] for index in indices]
        heads = [
            f"[{index + 1}]{_source(passage, self.notes.get(index))}"
            for index, passage in zip(indices, passages, strict=True)
        ]
        texts = tuple(passage.text for passage in passages)
        found = select(texts, tuple(map(len, heads)), self.claim, _SHOWN)
        parts: dict[int, list[str]] = {}
        for number, head in enumerate(heads):
            pieces = [piece for piece in found.chosen if piece.text == number]
            if pieces:
                parts[number] = [head, joined_pieces(pieces, found.counts[number])]
        return "\n\n".join("\n".join(each) for each in parts.values())


def _source(passage: Passage, note: str | None) -> str:
    about_it = ", ".join(filter(None, (passage.title, passage.url, passage.date, note)))
    return f" ({about_it})" if about_it else ""


def _told_by(entry: MemoryEntry) -> str:
    day = datetime.fromtimestamp(entry.at, UTC).date().isoformat()
    return f"from memory: found on {day} by {entry.tool} for “{entry.query}”"

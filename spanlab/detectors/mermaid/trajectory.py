"""What was done about a claim, for people: the steps of the trace, and the quotes of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spanlab.detectors.common.evidence import Remembered, quote, relevant, stance_of
from spanlab.detectors.mermaid.executor import Execution, Failure, Turn
from spanlab.detectors.mermaid.prompts import Decomposition
from spanlab.schema import Evidence, Item, RemarkStep, Step, ThoughtStep, Verdict

_QUOTED: Final = 8  # pieces of evidence of a claim at most


@dataclass(frozen=True)
class Seen:
    """An observation: the item's passages that a call brought, by 0-based index."""

    passages: tuple[int, ...]


@dataclass(frozen=True)
class Trajectory:
    """A claim, what it states, what was remembered of it, and how it was judged."""

    claim: str
    parts: Decomposition | None
    known: Remembered
    execution: Execution[Verdict, Seen]

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
        told: list[Step] = []
        if self.parts is not None:
            told.append(RemarkStep(text=f"taken apart: {background(self.parts)}", claim=number))
        told += self.known.steps(number)
        history = self.execution.history
        told += [_step(turn, number, at) for at, turn in enumerate(history, start=1)]
        forced = "the steps were used up: an answer was forced"
        last = forced if self.execution.forced else self.execution.thought
        return [*told, ThoughtStep(text=last, claim=number, round=len(history) + 1)]


def passages_of(turn: Turn[Seen]) -> Sequence[int]:
    """Return the indices of the passages that a step brought; empty if it brought none."""
    return turn.observation.passages if isinstance(turn.observation, Seen) else ()


def background(parts: Decomposition | None) -> str:
    """Return what a claim states in one line."""
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


def _step(turn: Turn[Seen], claim: int, at: int) -> ThoughtStep:
    called = turn.action.tool if turn.action else ""
    return ThoughtStep(
        text=turn.thought,
        tool="".join(filter(str.isprintable, called))[:200] or None,
        arguments=dict(turn.action.arguments) if turn.action else {},
        passages=tuple(passages_of(turn)),
        failure=str(turn.observation) if isinstance(turn.observation, Failure) else None,
        repeats=turn.repeats,
        claim=claim,
        round=at,
    )

"""The executor: thought, action, observation, until the claim is judged.

After Cao et al. 2026, "MERMAID: Memory-Enhanced Retrieval and Reasoning with Multi-Agent Iterative
Knowledge Grounding for Veracity Assessment", algorithm 1, lines 8 to 27; without models and tools.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from pydantic import JsonValue

from spanlab.base.errors import BudgetError, ConfigurationError

STEPS: Final = 5  # T_max, Implementation Details
A = TypeVar("A")
E = TypeVar("E")
Seen = TypeVar("Seen")  # an observation


@dataclass(frozen=True)
class ToolAction:
    """A call of a tool."""

    tool: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentThought(Generic[A]):
    """What the agent thinks, and what it does: an action, or an answer, which ends the loop.

    With both the answer counts; with neither nothing happens but that a step is used up.
    """

    text: str = ""
    action: ToolAction | None = None
    answer: A | None = None


@dataclass(frozen=True)
class FailedCall:
    """The observation of a call that failed, and why."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class AgentTurn(Generic[Seen]):
    """One step that did not end the loop.

    ``observation`` is None where the thought had no action. ``repeats`` is the 1-based number of
    the step whose call this one repeats, and whose observation it was given; None for a new call.
    """

    thought: str
    action: ToolAction | None
    observation: Seen | FailedCall | None
    repeats: int | None = None


@dataclass(frozen=True)
class AgentRun(Generic[A, Seen]):
    """How a claim was judged.

    ``history`` are the steps before the answer, ``thought`` is what came with the answer, empty if
    it was forced because the steps were used up.
    """

    answer: A
    history: tuple[AgentTurn[Seen], ...]
    forced: bool
    thought: str = ""


async def execute(
    claim: str,
    *,
    think: Callable[[str, Sequence[E], Sequence[AgentTurn[Seen]], int], Awaitable[AgentThought[A]]],
    call: Callable[[str, Mapping[str, JsonValue]], Awaitable[Seen]],
    recalled: Sequence[E] = (),
    steps: int = STEPS,
    conclude: Callable[[str, Sequence[E], Sequence[AgentTurn[Seen]]], Awaitable[A]],
) -> AgentRun[A, Seen]:
    """Gather evidence for a claim until it is judged; after ``steps`` steps an answer is forced.

    Args:
        claim: the claim.
        think: ``think(claim, recalled, history, left)`` decides what to do; ``left`` counts the
            steps that are left, this one included.
        call: ``call(tool, arguments)`` calls a tool. Its failure is an observation, and so is a
            tool that does not exist; a call that was made before is answered from the history.
        recalled: what the memory holds about the claim.
        steps: how often the agent may think, at least 0.
        conclude: ``conclude(claim, recalled, history)`` answers by what was gathered.

    Returns:
        The answer with the steps that led to it.

    Raises:
        BudgetError: the run's budget is used up.
        ConfigurationError: a key, an address or a model's name is wrong.
        Exception: ``think`` or ``conclude`` failed.
    """
    history: list[AgentTurn[Seen]] = []
    for step in range(steps):
        thought = await think(claim, recalled, tuple(history), steps - step)
        if thought.answer is not None:
            return AgentRun(thought.answer, tuple(history), forced=False, thought=thought.text)
        history.append(await _turn(thought, history, call))
    answer = await conclude(claim, recalled, tuple(history))
    return AgentRun(answer, tuple(history), forced=True)


async def _turn(
    thought: AgentThought[A],
    history: Sequence[AgentTurn[Seen]],
    call: Callable[[str, Mapping[str, JsonValue]], Awaitable[Seen]],
) -> AgentTurn[Seen]:
    action = thought.action
    if action is None:
        return AgentTurn(thought.text, None, None)
    for number, earlier in enumerate(history, start=1):
        if earlier.action is not None and _call_key(earlier.action) == _call_key(action):
            first = earlier.repeats or number
            return AgentTurn(thought.text, action, earlier.observation, repeats=first)
    try:
        observation: Seen | FailedCall = await call(action.tool, action.arguments)
    except (BudgetError, ConfigurationError):
        raise
    except TimeoutError as error:
        observation = FailedCall(str(error) or f"{action.tool} gave no answer in time")
    except Exception as error:  # noqa: BLE001 - other people's tools break in any way
        observation = FailedCall(str(error) or type(error).__name__)
    return AgentTurn(thought.text, action, observation)


def _call_key(action: ToolAction) -> tuple[str, str]:
    """Return the same for two calls that ask the same, in whatever order their arguments come."""
    return action.tool, json.dumps(dict(action.arguments), sort_keys=True)

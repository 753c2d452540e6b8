"""The loop of the executor, step by step, without models and tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from pydantic import JsonValue

from spanlab.base.errors import BudgetError, ConfigurationError, ToolError, UnavailableError
from spanlab.systems.mermaid.executor import (
    AgentRun,
    AgentThought,
    AgentTurn,
    FailedCall,
    ToolAction,
    execute,
)

CLAIM = "The tower is from 1889."
LOOK = ToolAction("search", {"query": "tower"})
OTHER = ToolAction("search", {"query": "1889"})


class Agent:
    """Thinks what it is told to, one thought after the other; the last one stays."""

    def __init__(self, *thoughts: AgentThought[bool], fails: Mapping[str, Exception] | None = None):
        self.thoughts, self.fails = thoughts, fails or {}
        self.left: list[int] = []
        self.seen: list[tuple[AgentTurn[str], ...]] = []
        self.called: list[tuple[str, dict[str, JsonValue]]] = []
        self.concluded = 0

    async def think(
        self, claim: str, recalled: Sequence[str], history: Sequence[AgentTurn[str]], left: int
    ) -> AgentThought[bool]:
        assert (claim, recalled) == (CLAIM, ("known",))
        self.left.append(left)
        self.seen.append(tuple(history))
        return self.thoughts[min(len(self.left), len(self.thoughts)) - 1]

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        self.called.append((tool, dict(arguments)))
        if tool in self.fails:
            raise self.fails[tool]
        return f"{tool} {len(self.called)}"

    async def conclude(
        self, claim: str, recalled: Sequence[str], history: Sequence[AgentTurn[str]]
    ) -> bool:
        assert (claim, recalled) == (CLAIM, ("known",))
        self.concluded += 1
        return len(history) > 3

    def run(self, steps: int = 5) -> AgentRun[bool, str]:
        return asyncio.run(
            execute(
                CLAIM,
                think=self.think,
                call=self.call,
                recalled=("known",),
                steps=steps,
                conclude=self.conclude,
            )
        )


def test_an_answer_at_once_calls_nothing() -> None:
    agent = Agent(AgentThought("I know it", answer=True))
    assert agent.run() == AgentRun(True, (), forced=False, thought="I know it")
    assert (agent.called, agent.concluded, agent.left) == ([], 0, [5])


def test_an_answer_that_is_false_is_an_answer_and_goes_before_an_action() -> None:
    agent = Agent(AgentThought("no", action=LOOK, answer=False))
    assert agent.run() == AgentRun(False, (), forced=False, thought="no")
    assert agent.called == []


def test_what_was_observed_is_shown_before_the_next_thought() -> None:
    agent = Agent(
        AgentThought("look", LOOK), AgentThought("more", OTHER), AgentThought("so", answer=True)
    )
    found = agent.run()
    first, second = AgentTurn("look", LOOK, "search 1"), AgentTurn("more", OTHER, "search 2")
    assert found == AgentRun(True, (first, second), forced=False, thought="so")
    assert agent.seen == [(), (first,), (first, second)]
    assert agent.left == [5, 4, 3]


@pytest.mark.parametrize("steps", [0, 1, 3, 5])
def test_after_the_last_step_an_answer_is_forced(steps: int) -> None:
    agent = Agent(*(AgentThought("look", ToolAction("search", {"query": n})) for n in range(9)))
    found = agent.run(steps)
    assert (found.forced, found.answer, found.thought) == (True, steps > 3, "")
    assert (len(found.history), len(agent.called), agent.concluded) == (steps, steps, 1)
    assert agent.left == list(range(steps, 0, -1))


def test_the_same_call_is_answered_from_the_history_and_says_so() -> None:
    same = ToolAction("search", {"b": 1, "a": 2})
    turned = ToolAction("search", {"a": 2, "b": 1})
    agent = Agent(
        AgentThought("1", same),
        AgentThought("2", OTHER),
        AgentThought("3", turned),
        AgentThought("4", same),
    )
    found = agent.run(4)
    assert [turn.repeats for turn in found.history] == [None, None, 1, 1]
    assert [turn.observation for turn in found.history] == ["search 1", "search 2"] + [
        "search 1"
    ] * 2
    assert len(agent.called) == 2


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(ToolError("there is no tool 'x'"), "there is no tool 'x'", id="no-such-tool"),
        pytest.param(UnavailableError("gone"), "gone", id="server-away"),
        pytest.param(TimeoutError(), "search gave no answer in time", id="timeout"),
        pytest.param(RuntimeError("broken"), "broken", id="a-fault-of-its-own"),
        pytest.param(TypeError(), "TypeError", id="a-fault-without-words"),
    ],
)
def test_a_tool_that_fails_is_an_observation(error: Exception, reason: str) -> None:
    agent = Agent(
        AgentThought("look", LOOK),
        AgentThought("again", LOOK),
        AgentThought("so", answer=True),
        fails={"search": error},
    )
    found = agent.run()
    assert found.history == (
        AgentTurn("look", LOOK, FailedCall(reason)),
        AgentTurn("again", LOOK, FailedCall(reason), repeats=1),
    )
    assert (found.answer, len(agent.called)) == (True, 1)


@pytest.mark.parametrize("error", [BudgetError("no more"), ConfigurationError("wrong key")])
def test_what_ends_the_run_ends_the_loop(error: Exception) -> None:
    with pytest.raises(type(error)):
        Agent(AgentThought("look", LOOK), fails={"search": error}).run()


def test_a_thought_without_action_or_answer_uses_up_a_step() -> None:
    agent = Agent(AgentThought("hm"), AgentThought("so", answer=True))
    assert agent.run().history == (AgentTurn("hm", None, None),)

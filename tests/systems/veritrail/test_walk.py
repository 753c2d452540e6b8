"""The walk from an answer to its sources: rounds, candidates, stop conditions, error stages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from spanlab.base.errors import UsageError
from spanlab.schema import Process, ProcessNode
from spanlab.systems.veritrail.walk import WalkResult, WalkRound, WalkVerdict, walk

YES: WalkVerdict = "supported"
NO: WalkVerdict = "not-supported"
MAYBE: WalkVerdict = "inconclusive"

# Two sources a and b, two summaries of them, and an answer made from these and from source c.
SUMMARIES = Process(
    nodes=(
        ProcessNode(id="a", text="source a", stage="source"),
        ProcessNode(id="b", text="source b", stage="source"),
        ProcessNode(id="c", text="source c", stage="source"),
        ProcessNode(id="A", text="summary of a", stage="summary", sources=("a",)),
        ProcessNode(id="B", text="summary of b", stage="summary", sources=("b",)),
        ProcessNode(id="end", text="answer", stage="answer", sources=("A", "B", "c")),
    )
)
# A draft is read by the answer beside what the draft was made from.
CHAIN = Process(
    nodes=(
        ProcessNode(id="root", text="source"),
        ProcessNode(id="notes", text="notes", sources=("root",)),
        ProcessNode(id="draft", text="draft", sources=("notes",)),
        ProcessNode(id="end", text="answer", sources=("draft", "notes")),
    )
)


def walked(
    process: Process, yields: Iterable[str], verdicts: Iterable[WalkVerdict], q: int = 1
) -> tuple[WalkResult, list[tuple[str, ...]]]:
    """Walk with scripted answers; return also what was judged."""
    said = iter(verdicts)
    judged: list[tuple[str, ...]] = []

    async def select(nodes: tuple[str, ...]) -> Iterable[str]:
        return [*(each for each in yields if each in nodes), "a made-up id"]

    async def judge(nodes: tuple[str, ...]) -> WalkVerdict:
        judged.append(nodes)
        return next(said)

    found = asyncio.run(walk(process, select=select, judge=judge, q=q))
    assert next(said, None) is None, "every scripted verdict was asked for"
    return found, judged


# fmt: off
CASES: Mapping[str, tuple[Any, ...]] = {
    # name: process, what gives evidence, verdicts, q; final verdict, rounds, error stages
    "supported down to a root": (
        SUMMARIES, "Aa", [YES, YES], 1,
        YES, [("ABc", "A", YES), ("a", "a", YES)], [],
    ),
    "after inconclusive, too, only sources of what gave evidence": (
        SUMMARIES, "Bb", [MAYBE, YES], 1,
        YES, [("ABc", "B", MAYBE), ("b", "b", YES)], [],
    ),
    "nothing selected is not supported without a call": (
        SUMMARIES, "", [], 1,
        NO, [("ABc", "", NO)], ["answer"],
    ),
    "one verdict ends it": (
        SUMMARIES, "A", [NO], 1,
        NO, [("ABc", "A", NO)], ["answer"],
    ),
    "with two allowed, the sources of all that was checked are read": (
        SUMMARIES, "Ab", [NO, YES], 2,
        YES, [("ABc", "A", NO), ("ab", "b", YES)], [],
    ),
    "two in a row end it": (
        SUMMARIES, "Ab", [NO, NO], 2,
        NO, [("ABc", "A", NO), ("ab", "b", NO)], ["answer"],
    ),
    "a root that gave evidence takes part later": (
        SUMMARIES, "Aca", [YES, YES], 1,
        YES, [("ABc", "Ac", YES), ("a", "a", YES)], [],
    ),
    "also when nothing new was selected": (
        SUMMARIES, "Ac", [YES, NO], 1,
        NO, [("ABc", "Ac", YES), ("a", "", NO)], ["summary"],
    ),
    "roots that give nothing: not supported, whatever was said before": (
        SUMMARIES, "A", [YES], 1,
        NO, [("ABc", "A", YES), ("a", "", NO)], ["summary"],
    ),
    "evidence from roots alone leaves nothing to read": (
        SUMMARIES, "c", [MAYBE], 1,
        MAYBE, [("ABc", "c", MAYBE)], [],
    ),
    "inconclusive, then not supported: no stage can be told": (
        SUMMARIES, "Aa", [MAYBE, NO], 1,
        NO, [("ABc", "A", MAYBE), ("a", "a", NO)], [],
    ),
    "the last supported round names the stages, without its roots": (
        SUMMARIES, "ABcab", [YES, NO], 1,
        NO, [("ABc", "ABc", YES), ("ab", "ab", NO)], ["summary"],
    ),
    "a node checked before is left out": (
        CHAIN, ["draft", "root"], [YES], 1,
        NO, [(["draft", "notes"], ["draft"], YES)], ["3"],
    ),
    "more rounds are allowed than there are": (
        CHAIN, ["draft", "notes", "root"], [NO, YES], 9,
        YES, [(["draft", "notes"], ["draft", "notes"], NO), (["root"], ["root"], YES)], [],
    ),
    "several stages may be at fault": (
        CHAIN, ["draft", "notes"], [YES], 1,
        NO, [(["draft", "notes"], ["draft", "notes"], YES), (["root"], [], NO)], ["2", "3"],
    ),
}
# fmt: on


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_walk_by_hand(case: tuple[Any, ...]) -> None:
    process, yields, verdicts, q, verdict, rounds, stages = case
    found, _ = walked(process, yields, verdicts, q)
    assert found == WalkResult(
        verdict,
        tuple(WalkRound(tuple(checked), tuple(gave), said) for checked, gave, said in rounds),
        tuple(stages),
    )


def test_roots_that_gave_evidence_are_judged_in_every_later_round() -> None:
    _, judged = walked(SUMMARIES, "Aca", [YES, YES])
    assert judged == [("A", "c"), ("a", "c")]


def test_an_answer_made_from_nothing_is_not_supported() -> None:
    alone = Process(nodes=(ProcessNode(id="end", text="answer", stage="answer"),))
    assert walked(alone, "", [])[0] == WalkResult("not-supported", (), ("answer",))


def test_at_least_one_verdict_must_end_it() -> None:
    with pytest.raises(UsageError, match="q is 0"):
        walked(SUMMARIES, "", [], q=0)


def random_process(rng: random.Random) -> Process:
    size = rng.randint(1, 12)
    nodes = [
        ProcessNode(
            id=str(number),
            text="x",
            sources=tuple(str(each) for each in range(number) if rng.random() < 0.35),
        )
        for number in range(size)
    ]
    read = {source for node in nodes for source in node.sources}
    loose = tuple(node.id for node in nodes if node.id not in read)
    return Process(nodes=(*nodes, ProcessNode(id="end", text="x", sources=loose)))


def stated(process: Process, holds: set[str], said: Mapping[int, WalkVerdict], q: int) -> Any:
    """The rules once more, as sets and in the order in which the paper states them."""
    sources = {node.id: set(node.sources) for node in process.nodes}
    history: list[tuple[set[str], set[str], WalkVerdict]] = []
    while True:
        if not history:
            candidates = sources["end"]
        else:
            checked, gave, verdict = history[-1]
            reach = checked if verdict == NO else gave
            candidates = set().union(*(sources[each] for each in reach))
        before = set().union(*(checked for checked, _, _ in history))
        old = {each for _, gave, _ in history for each in gave if not sources[each]}
        fresh = candidates - before
        last = [verdict for _, _, verdict in history[-q:]]
        if len(last) == q and set(last) == {NO}:
            final: WalkVerdict = NO
            break
        if not fresh:
            final = history[-1][2] if old else NO
            break
        gave = fresh & holds
        history.append((fresh, gave, said[len(history)] if gave | old else NO))
    if final != NO:
        return final, history, set()
    supported = [gave for _, gave, verdict in history if verdict == YES]
    if supported:
        return final, history, {process.stage_of(each) for each in supported[-1] if sources[each]}
    every = all(verdict == NO for _, _, verdict in history)
    return final, history, {process.stage_of("end")} if every else set()


class Script:
    """Answers by the number of the round, and remembers what it was asked."""

    def __init__(self, holds: set[str], said: Mapping[int, WalkVerdict]) -> None:
        self.holds, self.said = holds, said
        self.read: list[tuple[str, ...]] = []
        self.judged: dict[int, set[str]] = {}

    async def select(self, nodes: tuple[str, ...]) -> set[str]:
        self.read.append(nodes)
        return self.holds

    async def judge(self, nodes: tuple[str, ...]) -> WalkVerdict:
        self.judged[len(self.read) - 1] = set(nodes)
        return self.said[len(self.read) - 1]


@pytest.mark.parametrize("seed", range(10))
def test_walks_over_random_processes_follow_the_rules(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        process = random_process(rng)
        roots = {node.id for node in process.nodes if not node.sources}
        script = Script(
            {node.id for node in process.nodes if rng.random() < 0.6},
            {number: rng.choice((YES, NO, MAYBE)) for number in range(len(process.nodes))},
        )
        q = rng.randint(1, 4)
        final, history, stages = stated(process, script.holds, script.said, q)
        found = asyncio.run(walk(process, select=script.select, judge=script.judge, q=q))
        assert found.verdict == final
        assert [(set(r.checked), set(r.yielded), r.verdict) for r in found.rounds] == history
        assert set(found.error_stages) == stages
        read = [node for nodes in script.read for node in nodes]
        assert len(read) == len(set(read)), "no node is selected from twice"
        given = [gave for _, gave, _ in history]
        for number, evidence in script.judged.items():
            assert evidence == given[number] | (set().union(*given[:number]) & roots)

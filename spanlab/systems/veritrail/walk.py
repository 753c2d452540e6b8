"""VeriTrail's way from an answer back to its sources, for one claim.

After Metropolitansky et al. 2025, "VeriTrail: Closed-Domain Hallucination Detection with
Traceability", §3.1.4 and §3.2. Nothing here asks a model: choosing evidence and judging it are
passed in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from spanlab.base.errors import UsageError
from spanlab.schema import ProcessGraph

WalkVerdict = Literal["supported", "not-supported", "inconclusive"]
SUPPORTED: Final[WalkVerdict] = "supported"
NOT_SUPPORTED: Final[WalkVerdict] = "not-supported"


@dataclass(frozen=True)
class WalkRound:
    """One round: the nodes that were read, those of them that gave evidence, and the verdict."""

    checked: tuple[str, ...]
    yielded: tuple[str, ...]
    verdict: WalkVerdict


@dataclass(frozen=True)
class WalkResult:
    """The final verdict on a claim and how it came about.

    ``error_stages`` are the stages, earliest first, where what is not supported came in; empty
    where the claim is not "not-supported" or the stage cannot be told.
    """

    verdict: WalkVerdict
    rounds: tuple[WalkRound, ...]
    error_stages: tuple[str, ...] = ()


async def walk(
    process: ProcessGraph,
    *,
    select: Callable[[tuple[str, ...]], Awaitable[Iterable[str]]],
    judge: Callable[[tuple[str, ...]], Awaitable[WalkVerdict]],
    q: int = 1,
) -> WalkResult:
    """Follow a claim from the answer towards the sources until its verdict stands.

    Args:
        process: how the answer was generated.
        select: returns those of the nodes given that hold evidence; other ids are ignored. No
            node is given twice.
        judge: returns the verdict on the evidence of the nodes given: those of this round, then
            the roots that gave evidence before. It is not asked where there are none.
        q: how many rounds in a row must say "not-supported" to end the walk, at least 1.

    Returns:
        The latest verdict where roots gave evidence, otherwise "not-supported".

    Raises:
        UsageError: ``q`` is less than 1.
    """
    if q < 1:
        raise UsageError(f"q is {q}: it takes at least 1 round to call a claim not supported")
    rounds: list[WalkRound] = []
    roots: dict[str, None] = {}  # that gave evidence
    seen: set[str] = set()
    candidates: Sequence[str] = process.terminal.sources
    while checked := tuple(
        dict.fromkeys(candidate for candidate in candidates if candidate not in seen)
    ):
        seen.update(checked)
        chosen = set(await select(checked))
        yielded = tuple(node for node in checked if node in chosen)
        evidence = (*yielded, *roots)
        verdict = await judge(evidence) if evidence else NOT_SUPPORTED
        rounds.append(WalkRound(checked, yielded, verdict))
        roots.update(dict.fromkeys(node for node in yielded if not process.by_id[node].sources))
        if [past.verdict for past in rounds[-q:]] == [NOT_SUPPORTED] * q:
            break
        followed = checked if verdict == NOT_SUPPORTED else yielded
        candidates = [source for node in followed for source in process.by_id[node].sources]
    final = rounds[-1].verdict if roots else NOT_SUPPORTED
    return WalkResult(final, tuple(rounds), _error_stages(process, final, rounds))


def _error_stages(
    process: ProcessGraph, verdict: WalkVerdict, rounds: Sequence[WalkRound]
) -> tuple[str, ...]:
    """Return where what is not supported came in (§3.2)."""
    if verdict != NOT_SUPPORTED:
        return ()
    if all(past.verdict == NOT_SUPPORTED for past in rounds):
        return (process.stage_of(process.terminal.id),)
    last = next((past for past in reversed(rounds) if past.verdict == SUPPORTED), None)
    yielded = last.yielded if last else ()
    stages = {process.stage_of(node) for node in yielded if process.by_id[node].sources}
    return tuple(stage for stage in process.stages if stage in stages)

"""A round on the way from a claim to its sources in a trace, and the whole way for a picture.

A process may have a hundred thousand nodes: of it come those on the path with what was quoted of
them, and numbers for the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from typing import Final, Literal

from pydantic import JsonValue

from spanlab.base.errors import SpanlabError
from spanlab.base.fields import Count, Name
from spanlab.schema import (
    Annotation,
    Item,
    NodeQuote,
    ProcessGraph,
    ProcessNode,
    Verdict,
    process_of,
)
from spanlab.schema.trace import TraceStep


class TrailStep(TraceStep):
    """One round on the way from a claim to its sources: what was read, chosen and decided.

    ``checked`` are the ids of the nodes that were read, ``summaries`` say what the chosen
    sentences of nodes other than roots amount to. ``judged`` are the ids of nodes whose texts a
    verdict was given on as they stand, without sentences being chosen. ``dropped`` counts ids of
    sentences that the model returned without having been given them; ``remark`` says what did not
    fit the model.
    """

    kind: Literal["trail"] = "trail"
    checked: tuple[Name, ...]
    quotes: tuple[NodeQuote, ...] = ()
    summaries: tuple[str, ...] = ()
    verdict: Verdict
    reason: str | None = None
    judged: tuple[Name, ...] = ()
    dropped: Count = 0
    remark: str | None = None

    @classmethod
    def shown_beside(cls, item: Item, annotation: Annotation) -> dict[str, JsonValue]:
        """Return the ways of all claims, for their pictures."""
        return {"trails": [asdict(trail) for trail in trails(item, annotation)]}


_BEGINNING: Final = 400  # characters shown of a node's text that nothing was quoted of
_MOST_READERS: Final = 2000  # nodes of a round that are looked through for those that were read on


@dataclass(frozen=True)
class TrailStage:
    """A stage with the number of its nodes and how many of them were read for this claim."""

    name: str
    nodes: int
    read: int
    error: bool


@dataclass(frozen=True)
class TrailQuote:
    """A sentence of a node that was chosen, and in which round, counted from 1."""

    text: str
    round: int


@dataclass(frozen=True)
class TrailNode:
    """A node on the path; ``sources`` are those of its sources that are on it, too."""

    id: str
    stage: str
    beginning: str
    sources: tuple[str, ...]
    quotes: tuple[TrailQuote, ...]


@dataclass(frozen=True)
class TrailRound:
    """What one round read, how it summed that up, and its verdict."""

    read: int
    verdict: Verdict
    reason: str | None
    summaries: tuple[str, ...]


@dataclass(frozen=True)
class ClaimTrail:
    """The way of the claim with this 0-based number; stages are earliest first."""

    claim: int
    stages: tuple[TrailStage, ...]
    nodes: tuple[TrailNode, ...]
    rounds: tuple[TrailRound, ...]


def trails(item: Item, annotation: Annotation) -> list[ClaimTrail]:
    """Read the trails of claims from an annotation's trace.

    Args:
        item: the item as ``Store.record`` returns it.
        annotation: an annotation of this item.

    Returns:
        A trail for each claim that has one, in order; none whose nodes do not exist any more.
    """
    steps = [step for step in annotation.trace if isinstance(step, TrailStep)]
    claim_trails = []
    for claim, group in groupby(steps, key=lambda step: step.claim):
        if claim is not None and claim < len(annotation.claims):
            try:
                errors = annotation.claims[claim].error_stages
                claim_trails.append(_trail(process_of(item), claim, list(group), errors))
            except (SpanlabError, KeyError):
                continue
    return claim_trails


def _trail(
    process: ProcessGraph, claim: int, steps: Sequence[TrailStep], errors: Sequence[str]
) -> ClaimTrail:
    read = process.read([node for step in steps for node in step.checked])
    path = _path(process, steps)
    sizes, reads = process.sizes(), Counter(process.stage_of(node.id) for node in read)
    return ClaimTrail(
        claim=claim,
        stages=tuple(
            TrailStage(stage, sizes.get(stage, 0), reads[stage], stage in errors)
            for stage in process.stages
        ),
        nodes=tuple(
            TrailNode(
                id=node.id,
                stage=process.stage_of(node.id),
                beginning=node.text[:_BEGINNING],
                sources=tuple(source for source in node.sources if source in path),
                quotes=tuple(
                    TrailQuote(quote.text, number)
                    for number, step in enumerate(steps, start=1)
                    for quote in step.quotes
                    if quote.node == node.id
                ),
            )
            for node in path.values()
        ),
        rounds=tuple(
            TrailRound(len(step.checked), step.verdict, step.reason, step.summaries)
            for step in steps
        ),
    )


def _path(process: ProcessGraph, steps: Sequence[TrailStep]) -> Mapping[str, ProcessNode]:
    """Return the answer, the nodes that gave evidence, and those that led to them."""
    quoted = dict.fromkeys(quote.node for step in steps for quote in step.quotes)
    quoted |= dict.fromkeys(node for step in steps for node in step.judged)
    path = {process.terminal.id: process.terminal}
    path |= {node.id: node for node in process.read(list(quoted))}
    rounds = [(process.terminal.id,), *(step.checked for step in steps)]
    for later, earlier in pairwise(rounds[::-1]):
        reached = {source for node in earlier if node in path for source in path[node].sources}
        missing = {node for node in later if node in path} - reached
        for node in process.read(earlier[:_MOST_READERS]) if missing else ():
            if missing & set(node.sources):
                path[node.id] = node
                missing -= set(node.sources)
    return path

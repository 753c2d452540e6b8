"""Votes of many annotators as soft labels: each character's share of the voters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import isfinite, lcm
from typing import Literal

from spanlab.errors import UsageError
from spanlab.labels._extents import Extent, coverage
from spanlab.labels._soft import hard_of
from spanlab.labels._trim import mushroom_extents
from spanlab.schema import Annotation, Item, Kind, Span, Status

Cleanup = Literal["none", "mushroom"]


def vote(
    item: Item,
    annotations: Iterable[Annotation],
    *,
    name: str = "vote",
    weights: Mapping[str, float] | None = None,
    cleanup: Cleanup = "none",
) -> Annotation:
    """Return the soft labels that ``annotations`` of ``item`` give together.

    A voter marks a character or does not: its hard labels (``hard_of``) count, so a detector's
    span of probability 0.4 is no vote, and overlapping spans of one voter are one vote. Each
    character's probability is the share of the voters that mark it, split where it changes.
    Only finished annotations vote, one without spans votes against every character.

    Args:
        item: the item that all annotations belong to.
        annotations: at most one per annotator.
        name: annotator name of the vote.
        weights: weight >= 0 per annotator, needed for each that votes; the probability is then
            the share of the weight. None weighs all alike.
        cleanup: "mushroom" first moves the spans' edges as SemEval-2025 Task 3 did with its
            annotators' raw spans (see ``mushroom_extents``).

    Returns:
        A finished annotation of kind VOTE with its voters in the order given; without spans if
        nobody marks anything. Its note names the annotations that did not vote and why.

    Raises:
        UsageError: nobody has finished the item, an annotator is repeated, or a weight is
            missing, negative, not finite, or all are zero.
    """
    everyone = list(annotations)
    twice = [name for name, n in Counter(a.annotator for a in everyone).items() if n > 1]
    if twice:
        raise UsageError(f"item {item.id!r}: {', '.join(sorted(twice))} would vote more than once")
    voters = [annotation for annotation in everyone if annotation.status is Status.DONE]
    absent = [f"{a.annotator} ({a.status})" for a in everyone if a.status is not Status.DONE]
    if not voters:
        raise UsageError(
            f"item {item.id!r}: no finished annotation to vote with; "
            f"given: {', '.join(absent) or 'none'}"
        )
    names = tuple(voter.annotator for voter in voters)
    votes = [1] * len(voters) if weights is None else _whole(names, weights)
    total = sum(votes)
    marked = _marked(item, voters, cleanup)
    return Annotation(
        annotator=name,
        kind=Kind.VOTE,
        spans=tuple(
            Span.of(item.answer, start, end, prob=share / total)
            for start, end, share in coverage(marked, votes)
        ),
        voters=names,
        note=f"did not vote: {', '.join(absent)}" if absent else None,
    )


def _marked(item: Item, voters: list[Annotation], cleanup: Cleanup) -> list[list[Extent]]:
    if cleanup == "none":
        return [hard_of(voter) for voter in voters]
    if cleanup == "mushroom":
        raw = [
            [span for span in voter.spans if span.prob > 0.5] if voter.hard is None else voter.hard
            for voter in voters
        ]
        return mushroom_extents(item.answer, raw)
    raise UsageError(f"cleanup {cleanup!r} is not known; use 'none' or 'mushroom'")


def _whole(names: Sequence[str], weights: Mapping[str, float]) -> list[int]:
    """Weights as whole numbers in the same proportion: 0.1 + 0.2 of 0.6 must be exactly half."""
    exact: list[Fraction] = []
    for name in names:
        weight = weights.get(name)
        if weight is None:
            raise UsageError(f"annotator {name!r} votes but has no weight; weights: {weights}")
        if not isfinite(weight) or weight < 0:
            raise UsageError(f"the weight of {name!r} is {weight}; it must be finite and >= 0")
        exact.append(Fraction(str(weight)))
    if not any(exact):
        raise UsageError(f"all of {', '.join(names)} have weight 0: nobody is left to vote")
    scale = lcm(*(weight.denominator for weight in exact))
    return [int(weight * scale) for weight in exact]

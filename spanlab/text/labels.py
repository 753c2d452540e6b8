"""Soft and hard labels of spans, and votes of many annotators.

Pure functions on sorted lists of intervals; their cost follows the number of spans, not the
number of characters. Offsets are code points, start inclusive, end exclusive. Touching intervals
cover the same characters as their union, so merged lists are a normal form: two lists are equal
exactly when they cover the same characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from itertools import combinations, pairwise
from math import isfinite, lcm
from typing import Literal, NamedTuple

from spanlab.base.errors import InputError, UsageError
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Item,
    Record,
    Relations,
    Response,
    Responses,
    Span,
    Status,
    placed_in,
    relations_in,
)
from spanlab.text.extents import Extent, coverage, iou, merge, mushroom_extents

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
    Only finished annotations vote, one without spans votes against every character; one that says
    only whether the answer is hallucinated votes on that alone. How likely the answer is
    hallucinated is the share of all voters that say so, and more than half decide.

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
        nobody marks anything. Its note names the annotations that did not vote and why. Of
        responses to questions it has the median of numbers (the lower of two) and what more than
        half of those who responded say; attributes are of spans that a vote does not have.

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
    placed = placed_in(voters)
    marked = _marked(item, placed, cleanup)
    votes_on_marks = [n for voter, n in zip(voters, votes, strict=True) if voter in placed]
    total = sum(votes_on_marks)
    shares = coverage(marked, votes_on_marks) if total else []
    spans = tuple(
        Span.of(item.answer, start, end, prob=share / total) for start, end, share in shares
    )
    called = sum(n for voter, n in zip(voters, votes, strict=True) if voter.hallucinated)
    is_called, follows = 2 * called > sum(votes), any(span.prob > 0.5 for span in spans)
    likeliest = max((span.prob for span in spans), default=0.0)
    return Annotation(
        annotator=name,
        kind=AnnotatorKind.VOTE,
        answer_hallucinated=is_called if is_called > follows or not placed else None,
        answer_prob=called / sum(votes) if likeliest != called / sum(votes) else None,
        spans=spans,
        voters=names,
        responses=_responses(voters, votes),
        note=f"did not vote: {', '.join(absent)}" if absent else None,
    )


def _responses(voters: list[Annotation], votes: list[int]) -> Responses:
    chosen: dict[str, Response] = {}
    for name in dict.fromkeys(name for voter in voters for name in voter.responses):
        counts = Counter[Response]()
        for voter, weight in zip(voters, votes, strict=True):
            if name in voter.responses:
                counts[voter.responses[name]] += weight
        if all(isinstance(given, int) for given in counts):
            below = 0
            for given, weight in sorted(counts.items()):
                below += weight
                if below and 2 * below >= counts.total():
                    chosen[name] = given
                    break
        else:
            (given, most), *_ = counts.most_common(1)
            chosen |= {name: given} if 2 * most > counts.total() else {}
    return chosen


def _marked(item: Item, voters: Sequence[Annotation], cleanup: Cleanup) -> list[list[Extent]]:
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


class SoftLabel(NamedTuple):
    """Characters ``[start, end)`` that a proportion ``prob`` in (0, 1] of annotators marks."""

    start: int
    end: int
    prob: float


class AnswerVerdict(NamedTuple):
    """What an annotator says of a whole answer.

    ``prob`` in [0, 1] is how likely it is hallucinated. ``is_placed`` is False where the annotator
    says no more than that, and marks no place.
    """

    hallucinated: bool
    prob: float
    is_placed: bool = True


@dataclass(frozen=True)
class ItemLabels:
    """The labels of one item, as a scorer needs them.

    ``soft`` is flattened and ``hard`` merged, both in characters of the answer. ``raters`` holds
    one merged list per annotator, where single annotators are known. ``length`` is the answer's
    length in characters, None in a submission that comes without its answers. ``answer`` is what an
    annotation says of the whole answer; None for labels that are in no annotation. ``relations``
    are what it may have in common with other answers. Lists that are
    not sorted and merged raise a ValueError.
    """

    id: str
    lang: str
    soft: tuple[SoftLabel, ...]
    hard: tuple[Extent, ...]
    raters: tuple[tuple[Extent, ...], ...] = ()
    length: int | None = None
    answer: AnswerVerdict | None = field(default=None, compare=False)
    relations: Relations = field(default=Relations(), compare=False)

    @property
    def verdict(self) -> AnswerVerdict:
        """The verdict on the whole answer; of labels alone as ``Annotation`` has it by default."""
        if self.answer is not None:
            return self.answer
        return AnswerVerdict(bool(self.hard), max([label.prob for label in self.soft], default=0.0))

    def __post_init__(self) -> None:
        """Check the order that everything built on these labels relies on."""
        for before, after in pairwise(self.soft):
            if after.start < before.end:
                raise ValueError(f"item {self.id!r}: soft {before} and {after} are not flattened")
        for extents in (self.hard, *self.raters):
            for left, right in pairwise(extents):
                if right.start <= left.end:
                    raise ValueError(f"item {self.id!r}: {left} and {right} are not merged")


def flatten(
    spans: Iterable[Span | SoftLabel], *, overlap: Literal["highest", "last"] = "highest"
) -> list[SoftLabel]:
    """Return probabilities per character as intervals that do not overlap.

    Touching neighbours of equal probability are joined. Probability 0 means the same as no span
    and is dropped.

    Args:
        spans: in any order.
        overlap: which span counts where some overlap. "highest" is the highest probability; "last"
            the span that comes last in ``spans``, as the scorer of SemEval-2025 Task 3 reads
            submissions.

    Returns:
        Soft labels sorted by start; empty if nothing has a probability above 0.
    """
    last = overlap == "last"
    marks = [
        (span.start, span.end, -index if last else -span.prob, span.prob)
        for index, span in enumerate(spans)
        if span.end > span.start
    ]
    marks.sort()
    flat: list[SoftLabel] = []
    covering: list[tuple[float, int, float]] = []  # heap of (rank, end, prob); lowest rank wins
    index = position = 0
    while index < len(marks) or covering:
        if not covering:
            position = marks[index][0]
        while index < len(marks) and marks[index][0] == position:
            _, end, rank, prob = marks[index]
            heappush(covering, (rank, end, prob))
            index += 1
        _, end, prob = covering[0]
        if end <= position:
            heappop(covering)
            continue
        stop = min(end, marks[index][0]) if index < len(marks) else end
        if prob and flat and flat[-1].end == position and flat[-1].prob == prob:
            flat[-1] = SoftLabel(flat[-1].start, stop, prob)
        elif prob:
            flat.append(SoftLabel(position, stop, prob))
        position = stop
    return flat


_LIKELY = 0.5


def harden(soft: Iterable[Span | SoftLabel], threshold: float = _LIKELY) -> list[Extent]:
    """Return the characters whose probability is strictly greater than ``threshold``, merged."""
    return merge([label for label in soft if label.prob > threshold])


def hard_of(annotation: Annotation) -> list[Extent]:
    """Return the characters that ``annotation`` decides are hallucinated, merged.

    Its own ``hard`` if it has that, else the characters of spans with probability > 0.5. Empty if
    it marks nothing; only its status tells whether it was finished.
    """
    return merge(annotation.hard) if annotation.hard is not None else harden(annotation.spans)


def labels_of(record: Record, annotator: str) -> ItemLabels:
    """Return the labels of an item by ``annotator``, with those of persons as raters.

    Raises:
        InputError: the annotator has not finished this item; a failed or missing annotation is
            not "nothing found", so look at ``record.by(annotator)`` first.
    """
    annotation = record.by(annotator)
    if annotation is None or annotation.status is not Status.DONE:
        finished = ", ".join(a.annotator for a in record.annotations if a.status is Status.DONE)
        raise InputError(
            f"item {record.item.id!r} has no finished annotation by {annotator!r}",
            found="no annotation" if annotation is None else str(annotation.status),
            expected=f"an annotator that has finished it: {finished or 'nobody has'}",
        )
    raters = (tuple(hard_of(rater)) for rater in _done(record.annotations, AnnotatorKind.PERSON))
    return labels_in(record.item, annotation, tuple(raters))


def labels_in(
    item: Item,
    annotation: Annotation,
    raters: tuple[tuple[Extent, ...], ...] = (),
    hard: tuple[Extent, ...] | None = None,
) -> ItemLabels:
    """Return the labels of an annotation of an item, with the merged marks of ``raters``.

    ``hard`` is what ``hard_of`` says of the annotation, if the caller has already computed it.
    """
    return ItemLabels(
        id=item.id,
        lang=item.lang,
        soft=tuple(flatten(annotation.spans)),
        hard=tuple(hard_of(annotation)) if hard is None else hard,
        raters=raters,
        length=len(item.answer),
        answer=AnswerVerdict(
            bool(annotation.hallucinated),
            annotation.hallucination_prob or 0.0,
            is_placed=not annotation.is_verdict_only,
        ),
        relations=relations_in(item),
    )


def disagreement(annotations: Iterable[Annotation]) -> float | None:
    """Return 1 minus the mean pairwise IoU of what persons and detectors decided.

    0.0 means that all mark the same characters (or all mark none), 1.0 that no two have one in
    common. Where one of two says only whether the answer is hallucinated, they differ by 0 or 1.
    Gold labels, votes and unfinished annotations do not take part.

    Returns:
        A number in [0, 1]; None with fewer than two finished annotations.
    """
    deciding = list(_done(annotations, AnnotatorKind.PERSON, AnnotatorKind.DETECTOR))
    if len(deciding) < 2:
        return None
    marked = [(annotation, hard_of(annotation)) for annotation in deciding]
    pairs = [
        float(a.hallucinated == b.hallucinated)
        if a.is_verdict_only or b.is_verdict_only
        else iou(of_a, of_b)
        for (a, of_a), (b, of_b) in combinations(marked, 2)
    ]
    return 1.0 - sum(pairs) / len(pairs)


def people_agree(annotations: Iterable[Annotation]) -> bool:
    """Say whether at least two persons finished an item and all of them decided the same.

    They mark the same characters with the same labels, and give the same verdict on the answer.
    """
    people = _done(annotations, AnnotatorKind.PERSON)
    return len(people) > 1 and len({_decision(person) for person in people}) == 1


def _decision(annotation: Annotation) -> tuple[Hashable, ...]:
    likely = [span for span in annotation.spans if span.prob > 0.5]
    by_label = {
        (label, *merge(span for span in likely if span.label == label))
        for label in {span.label for span in likely}
    }
    return annotation.hallucinated, *hard_of(annotation), frozenset(by_label)


def _done(annotations: Iterable[Annotation], *kinds: AnnotatorKind) -> list[Annotation]:
    return [a for a in annotations if a.status is Status.DONE and a.kind in kinds]

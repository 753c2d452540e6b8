"""Spans with probabilities, and the hard decisions that follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import combinations, pairwise
from typing import Literal, NamedTuple

from spanlab.errors import InputError
from spanlab.labels._extents import Extent, iou, merge
from spanlab.schema import Annotation, Item, Kind, Record, Span, Status


class Soft(NamedTuple):
    """Characters ``[start, end)`` that a proportion ``prob`` in (0, 1] of annotators marks."""

    start: int
    end: int
    prob: float


@dataclass(frozen=True)
class Labels:
    """The labels of one item, as a scorer needs them.

    ``soft`` is flattened and ``hard`` merged, both in characters of the answer. ``raters`` holds
    one merged list per annotator, where single annotators are known. ``length`` is the answer's
    length in characters, None in a submission that comes without its answers. Lists that are not
    sorted and merged raise a ValueError.
    """

    id: str
    lang: str
    soft: tuple[Soft, ...]
    hard: tuple[Extent, ...]
    raters: tuple[tuple[Extent, ...], ...] = ()
    length: int | None = None

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
    spans: Iterable[Span | Soft], *, overlap: Literal["highest", "last"] = "highest"
) -> list[Soft]:
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
    flat: list[Soft] = []
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
            flat[-1] = Soft(flat[-1].start, stop, prob)
        elif prob:
            flat.append(Soft(position, stop, prob))
        position = stop
    return flat


def harden(soft: Iterable[Span | Soft], threshold: float = 0.5) -> list[Extent]:
    """Return the characters whose probability is strictly greater than ``threshold``, merged."""
    return merge([label for label in soft if label.prob > threshold])


def hard_of(annotation: Annotation) -> list[Extent]:
    """Return the characters that ``annotation`` decides are hallucinated, merged.

    Its own ``hard`` if it has that, else the characters of spans with probability > 0.5. Empty if
    it marks nothing; only its status tells whether it was finished.
    """
    return merge(annotation.hard) if annotation.hard is not None else harden(annotation.spans)


def labels_of(record: Record, annotator: str) -> Labels:
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
    raters = (tuple(hard_of(rater)) for rater in _done(record.annotations, Kind.PERSON))
    return labels_in(record.item, annotation, tuple(raters))


def labels_in(
    item: Item,
    annotation: Annotation,
    raters: tuple[tuple[Extent, ...], ...] = (),
    hard: tuple[Extent, ...] | None = None,
) -> Labels:
    """Return the labels of an annotation of an item, with the merged marks of ``raters``.

    ``hard`` is what ``hard_of`` says of the annotation, from who knows it already.
    """
    return Labels(
        id=item.id,
        lang=item.lang,
        soft=tuple(flatten(annotation.spans)),
        hard=tuple(hard_of(annotation)) if hard is None else hard,
        raters=raters,
        length=len(item.answer),
    )


def disagreement(annotations: Iterable[Annotation]) -> float | None:
    """Return 1 minus the mean pairwise IoU of what persons and detectors decided.

    0.0 means that all mark the same characters (or all mark none), 1.0 that no two have one in
    common. Gold labels, votes and unfinished annotations do not take part.

    Returns:
        A number in [0, 1]; None with fewer than two finished annotations.
    """
    marked = [hard_of(annotation) for annotation in _done(annotations, Kind.PERSON, Kind.DETECTOR)]
    if len(marked) < 2:
        return None
    pairs = [iou(a, b) for a, b in combinations(marked, 2)]
    return 1.0 - sum(pairs) / len(pairs)


def _done(annotations: Iterable[Annotation], *kinds: Kind) -> list[Annotation]:
    return [a for a in annotations if a.status is Status.DONE and a.kind in kinds]

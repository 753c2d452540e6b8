"""Sets of characters as sorted lists of intervals that neither overlap nor touch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol


class Extent(NamedTuple):
    """Characters ``[start, end)``."""

    start: int
    end: int


class Covered(NamedTuple):
    """Characters ``[start, end)`` and the weight of the annotators that cover them."""

    start: int
    end: int
    weight: int


class Bounded(Protocol):
    """Anything with a start and an end: extents, soft labels, spans, intervals."""

    @property
    def start(self) -> int:
        """First character."""

    @property
    def end(self) -> int:
        """One past the last character."""


def merge(extents: Iterable[Bounded]) -> list[Extent]:
    """Return the characters that ``extents`` cover, sorted by start with a gap before each next.

    They may come in any order, overlap, touch and repeat. Empty ones are dropped.
    """
    merged: list[Extent] = []
    first, last = 0, -1
    for start, end in sorted([(extent.start, extent.end) for extent in extents]):
        if end <= start:
            continue
        if start > last:
            if last >= 0:
                merged.append(Extent(first, last))
            first, last = start, end
        elif end > last:
            last = end
    if last >= 0:
        merged.append(Extent(first, last))
    return merged


def intersection(a: Iterable[Bounded], b: Iterable[Bounded]) -> list[Extent]:
    """Return the characters that both ``a`` and ``b`` cover, merged; empty if there are none."""
    left, right = merge(a), merge(b)
    common: list[Extent] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start = max(left[i].start, right[j].start)
        end = min(left[i].end, right[j].end)
        if start < end:
            common.append(Extent(start, end))
        if left[i].end <= right[j].end:
            i += 1
        else:
            j += 1
    return common


def length(extents: Iterable[Bounded]) -> int:
    """Return how many characters ``extents`` cover, each counted once; 0 for none."""
    return size(merge(extents))


def size(merged: Sequence[Extent]) -> int:
    """Return how many characters a *merged* list covers; 0 for none."""
    return sum([end - start for start, end in merged])


def overlap(a: Sequence[Extent], b: Sequence[Extent]) -> int:
    """Return how many characters two *merged* lists have in common; 0 if either is empty."""
    if not a or not b:
        return 0
    common = 0
    others = iter(b)
    low, high = next(others)
    for start, end in a:
        while high <= start:
            low, high = next(others, _BEYOND)
        while low < end:
            common += (high if high < end else end) - (low if low > start else start)
            if high > end:
                break
            low, high = next(others, _BEYOND)
    return common


def iou(a: Sequence[Extent], b: Sequence[Extent]) -> float:
    """Return intersection over union of two *merged* lists, in characters.

    1.0 means the same characters, 0.0 none in common. Both empty is 1.0 (they agree that nothing
    is marked); exactly one empty is 0.0.
    """
    if not a and not b:
        return 1.0
    common = overlap(a, b)
    return common / (size(a) + size(b) - common)


def coverage(lists: Sequence[Sequence[Extent]], weights: Sequence[int]) -> list[Covered]:
    """Return by how much each stretch of characters is covered.

    Args:
        lists: *merged* lists, one per annotator.
        weights: the weight of each list, whole numbers >= 0, in the same order.

    Returns:
        Stretches sorted by start with the sum of the weights of the lists that cover them,
        split where that sum changes; nothing where it is 0.
    """
    changes: dict[int, int] = {}
    for extents, weight in zip(lists, weights, strict=True):
        for start, end in extents:
            changes[start] = changes.get(start, 0) + weight
            changes[end] = changes.get(end, 0) - weight
    stretches: list[Covered] = []
    total = begin = 0
    for position in sorted(changes):
        change = changes[position]
        if change == 0:
            continue
        if total > 0:
            stretches.append(Covered(begin, position, total))
        total += change
        begin = position
    return stretches


_BEYOND = Extent(1 << 62, 1 << 62)  # past any text: ends a walk without a special case

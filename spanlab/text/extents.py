"""Sets of characters as sorted lists of intervals that neither overlap nor touch; trimmed edges."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

_ASCII_EDGES = frozenset(string.punctuation + string.whitespace)


class _EdgeMask(dict[int, str]):
    """Translates a text into one blank per edge character and a w per any other."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        edge = character in _ASCII_EDGES or unicodedata.category(character)[0] in "PZ"
        self[code] = " " if edge else "w"
        return self[code]


_MASK = _EdgeMask()


def trim_space(text: str, extent: HasBounds) -> Extent:
    """Return ``extent`` of ``text`` without white space at its edges; unchanged if all is."""
    quote = text[extent.start : extent.end]
    if not quote.strip():
        return Extent(extent.start, extent.end)
    start = extent.end - len(quote.lstrip())
    return Extent(start, extent.start + len(quote.rstrip()))


def mushroom_extents(text: str, raters: Iterable[Sequence[HasBounds]]) -> list[list[Extent]]:
    """Return annotators' raw spans as SemEval-2025 Task 3 cleaned them before its vote.

    Per annotator, in text order: (1) a span's start skips the run of edge characters (Unicode
    categories P* and Z*, ASCII punctuation and white space) that begins there, its end takes in
    the run that begins right after it; (2) empty spans go; (3) a span that starts where the
    previous one ended is merged into it, which uses the previous one up: a third that starts where
    these two ended begins anew; (4) edge characters at the end are dropped. So what lies between
    two spans of a merged pair stays marked and what lies behind the pair does not. The published
    labels show the rule.

    Args:
        text: the answer.
        raters: raw spans, one sequence per annotator, in any order, unmerged.

    Returns:
        One merged list per annotator, in the same order; empty for one who marks nothing.
    """
    mask = text.translate(_MASK)
    return [_mushroom(mask, extents) for extents in raters]


def _mushroom(mask: str, extents: Sequence[HasBounds]) -> list[Extent]:
    joined: list[Extent] = []
    previous_is_pair = False
    for raw_start, raw_end in sorted([(extent.start, extent.end) for extent in extents]):
        start, end = _after_run(mask, raw_start), _after_run(mask, raw_end)
        if raw_end <= raw_start or end <= start:
            continue
        if joined and joined[-1].end == start and not previous_is_pair:
            joined[-1] = Extent(joined[-1].start, end)
            previous_is_pair = True
        else:
            joined.append(Extent(start, end))
            previous_is_pair = False
    return merge([Extent(start, mask.rfind("w", start, end) + 1) for start, end in joined])


def _after_run(mask: str, position: int) -> int:
    """Where the run of edge characters that begins at ``position`` (perhaps empty) ends."""
    next_word = mask.find("w", position)
    return len(mask) if next_word < 0 else next_word


class Extent(NamedTuple):
    """Characters ``[start, end)``."""

    start: int
    end: int


class WeightedExtent(NamedTuple):
    """Characters ``[start, end)`` and the weight of the annotators that cover them."""

    start: int
    end: int
    weight: int


class HasBounds(Protocol):
    """Anything with a start and an end: extents, soft labels, spans, intervals."""

    @property
    def start(self) -> int:
        """First character."""

    @property
    def end(self) -> int:
        """One past the last character."""


def merge(extents: Iterable[HasBounds]) -> list[Extent]:
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


def intersection(a: Iterable[HasBounds], b: Iterable[HasBounds]) -> list[Extent]:
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


def length(extents: Iterable[HasBounds]) -> int:
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


def coverage(lists: Sequence[Sequence[Extent]], weights: Sequence[int]) -> list[WeightedExtent]:
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
    stretches: list[WeightedExtent] = []
    total = begin = 0
    for position in sorted(changes):
        change = changes[position]
        if change == 0:
            continue
        if total > 0:
            stretches.append(WeightedExtent(begin, position, total))
        total += change
        begin = position
    return stretches


_BEYOND = Extent(1 << 62, 1 << 62)  # past any text: ends a walk without a special case

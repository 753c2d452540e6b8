"""Which words of two texts are the same, in order, at a cost that follows their length."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from rapidfuzz.distance import Levenshtein

# Bit-parallel edit distance costs old x new / 64; above this many cells texts are cut first.
_CELLS: Final = 2_000_000
_CHUNK: Final = 1_000  # words between two cuts
_GRAM: Final = 4  # words that must stand once on both sides for a cut to be safe


class Change(NamedTuple):
    """Words ``[old_start, old_end)`` became words ``[new_start, new_end)``; one may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return the changes that turn the words ``old`` into ``new``, with the fewest words changed.

    Long texts are first cut where four words in a row occur once on both sides, in the longest
    such series that keeps its order. A stretch without any such place is rewritten anyway and is
    cut in proportion, so that time grows with length and not with its square.

    Returns:
        Maximal changes in order, with at least one equal word between two; empty if the texts
        are the same.
    """
    found: list[Change] = []
    _align(old, new, Change(0, len(old), 0, len(new)), found)
    return _tidy(found)


def settle(
    found: Sequence[Change], old: Sequence[str], fit: Callable[[int, int], int]
) -> list[Change]:
    """Choose among equivalent places of a deletion, such as in "the old the new".

    Deleting "the old" or "old the" gives the same text. A deletion moves to a neighbouring change
    if it can reach it, which makes one change of two; else to the place that fits best: ``fit``
    rates words ``[start, end)`` as a deletion, and the first of equals wins.
    """
    settled: list[Change] = []
    for index, change in enumerate(found):
        before = settled[-1].old_end if settled else 0
        after = found[index + 1].old_start if index + 1 < len(found) else len(old)
        deletion = change.new_start == change.new_end
        settled.append(_slide(change, old, (before, after), fit) if deletion else change)
    return _tidy(settled)


def _align(old: Sequence[str], new: Sequence[str], part: Change, found: list[Change]) -> None:
    a, b, c, d = part
    while a < b and c < d and old[a] == new[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
    if a == b or c == d:
        if (a, c) != (b, d):
            found.append(Change(a, b, c, d))
    elif (b - a) * (d - c) <= _CELLS:
        found.extend(
            Change(a + op.src_start, a + op.src_end, c + op.dest_start, c + op.dest_end)
            for op in Levenshtein.opcodes(old[a:b], new[c:d])
            if op.tag != "equal"
        )
    else:
        for piece in _cut(old, new, Change(a, b, c, d)):
            _align(old, new, piece, found)


def _cut(old: Sequence[str], new: Sequence[str], part: Change) -> list[Change]:
    """Cut a part in two or more, at safe places if there are any."""
    a, b, c, d = part
    cuts = [(a, c)]
    for i, j in _anchors(old[a:b], new[c:d]):
        if max(a + i - cuts[-1][0], c + j - cuts[-1][1]) >= _CHUNK:
            cuts.append((a + i, c + j))
    if len(cuts) == 1:
        pieces = max(b - a, d - c) // _CHUNK + 1
        cuts = [(a + (b - a) * k // pieces, c + (d - c) * k // pieces) for k in range(pieces)]
    cuts.append((b, d))
    return [Change(i, k, j, m) for (i, j), (k, m) in pairwise(cuts)]


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of places of runs that occur once on both sides, rising on both."""
    places = _once(new)
    pairs = [(i, places[run]) for run, i in _once(old).items() if run in places]
    tails: list[int] = []  # lowest last place of a rising series of each length
    last: list[int] = []  # index of the pair there
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        size = bisect_left(tails, place)
        before.append(last[size - 1] if size else -1)
        tails[size : size + 1] = [place]
        last[size : size + 1] = [index]
    rising: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        rising.append(pairs[index])
        index = before[index]
    return rising[::-1]


def _once(words: Sequence[str]) -> dict[tuple[str, ...], int]:
    runs = list(zip(*(words[shift:] for shift in range(_GRAM)), strict=False))
    counts = Counter(runs)
    return {run: place for place, run in enumerate(runs) if counts[run] == 1}


def _slide(
    change: Change, old: Sequence[str], limits: tuple[int, int], fit: Callable[[int, int], int]
) -> Change:
    start, end = change.old_start, change.old_end
    low = high = 0
    while start + low > limits[0] and old[start + low - 1] == old[end + low - 1]:
        low -= 1
    while end + high < limits[1] and old[start + high] == old[end + high]:
        high += 1
    if low == high:
        return change
    if start + low == limits[0] and limits[0]:
        by = low
    elif end + high == limits[1] and limits[1] < len(old):
        by = high
    else:
        by = max(range(low, high + 1), key=lambda shift: fit(start + shift, end + shift))
    return Change(start + by, end + by, change.new_start + by, change.new_end + by)


def _tidy(found: Sequence[Change]) -> list[Change]:
    """Join changes that touch."""
    joined: list[Change] = []
    for change in found:
        last = joined[-1] if joined else None
        if last and (last.old_end, last.new_end) == (change.old_start, change.new_start):
            joined[-1] = last._replace(old_end=change.old_end, new_end=change.new_end)
        else:
            joined.append(change)
    return joined

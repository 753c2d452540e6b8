"""Punctuation and space at the edges of spans."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable, Sequence

from spanlab.labels._extents import Bounded, Extent, merge

_ASCII_EDGES = frozenset(string.punctuation + string.whitespace)


class _Mask(dict[int, str]):
    """Translates a text into one blank per edge character and a w per any other."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        edge = character in _ASCII_EDGES or unicodedata.category(character)[0] in "PZ"
        self[code] = " " if edge else "w"
        return self[code]


_MASK = _Mask()


def trim_space(text: str, extent: Bounded) -> Extent:
    """Return ``extent`` of ``text`` without white space at its edges; unchanged if all is."""
    quote = text[extent.start : extent.end]
    if not quote.strip():
        return Extent(extent.start, extent.end)
    start = extent.end - len(quote.lstrip())
    return Extent(start, extent.start + len(quote.rstrip()))


def mushroom_extents(text: str, raters: Iterable[Sequence[Bounded]]) -> list[list[Extent]]:
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


def _mushroom(mask: str, extents: Sequence[Bounded]) -> list[Extent]:
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
    found = mask.find("w", position)
    return len(mask) if found < 0 else found

"""Edit-distance mapper: the changes of a corrected answer as spans of the original.

After the minimal-cost revision of Huang et al. (2025), "UCSC at SemEval-2025 Task 3": a model
corrects the answer with as few changes as it can, and the words it deleted or replaced are taken
for hallucinated. Ours differs in what a word is (the rules of the answer's language, one character
where no space parts words) and in that a repeated word stays at its own place, because whole
sequences of words are aligned.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import Final, Literal

import Levenshtein as Characters
from rapidfuzz.distance import Levenshtein

from spanlab.labels import Extent
from spanlab.mappers.alignment import Change, changes, settle
from spanlab.mappers.folding import fold
from spanlab.mappers.places import MappedSpan
from spanlab.mappers.scripts import whole
from spanlab.mappers.tokens import tokens

Refine = Literal["word", "char"]

_PART: Final = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+|.", re.DOTALL)
_LEAST: Final = 0.6  # probability of the smallest change of a word; a full replacement has 1.0
_COSMETIC: Final = 0.3  # letter case, punctuation, typography: changed, but hardly hallucinated
_KEPT: Final = 0.5  # share of a word that must stay for only the rest to be marked
_RUN: Final = 3  # characters in a row that count as kept between two changes of a word


def map_revision(
    answer: str,
    revised: str,
    *,
    lang: str,
    refine: Refine = "word",
    insertions: bool = False,
    prob: float | None = None,
) -> tuple[MappedSpan, ...]:
    """Return the spans of ``answer`` that ``revised`` deletes or replaces.

    Args:
        answer: the text as it is; offsets are code points of it.
        revised: the same text, corrected.
        lang: BCP 47 tag of the answer; it decides what a word is.
        refine: "word" marks whole words; "char" only the changed characters of a word of which
            at least half stays (1999 to 1989 marks one digit).
        insertions: mark the neighbouring word where something was only added, which otherwise
            leaves no mark.
        prob: probability of every span, in [0, 1]. None takes it from the size of the change:
            1.0 for a deletion or a word that shares nothing with the new one, down to 0.6 for
            a single letter, and 0.3 where only letter case, punctuation or typography changed.

    Returns:
        Spans sorted by start, without overlap; words changed in a row are one span. Whitespace
        alone is never a change. Empty if nothing was changed.
    """
    old, new = _parts(answer, lang), _parts(revised, lang)
    words = [answer[start:end] for start, end in old]
    news = [revised[start:end] for start, end in new]
    spans: list[MappedSpan] = []
    for change in settle(changes(words, news), words, lambda a, b: _fit(answer, old, a, b)):
        changed = old[change.old_start : change.old_end]
        before = _text(answer, changed)
        after = _text(revised, new[change.new_start : change.new_end])
        if before:
            marks = [Extent(changed[0].start, changed[-1].end)]
            if refine == "char":
                marks = _refined(answer, changed, after)
        elif insertions and old:
            marks = [_neighbour(answer, old, change)]
        else:
            continue
        sure = _size_of(before, after) if prob is None else prob
        spans.extend(MappedSpan(start, end, sure) for start, end in marks)
    return _apart(spans)


def _parts(text: str, lang: str) -> list[Extent]:
    """Cut the tokens of the language further: a dash, slash or tag in a word parts it."""
    parts: list[Extent] = []
    for extent in tokens(text, lang):
        start, end = extent
        if end - start == 1 or text[start:end].isalnum():
            parts.append(extent)
        else:
            parts.extend(Extent(*part.span()) for part in _PART.finditer(text, start, end))
    return whole(text, parts)


def _text(text: str, parts: list[Extent]) -> str:
    return text[parts[0].start : parts[-1].end] if parts else ""


def _fit(text: str, parts: list[Extent], first: int, last: int) -> int:
    """Return how well a deletion of these words starts and ends: at punctuation, not with it."""

    def is_mark(index: int) -> bool:
        return not (0 <= index < len(parts)) or not text[parts[index].start].isalnum()

    return is_mark(first - 1) + is_mark(last) - 2 * is_mark(first)


def _size_of(before: str, after: str) -> float:
    """Turn the size of a change into a probability."""
    if not after:
        return 1.0 if any(c.isalnum() for c in before) else _COSMETIC
    old, new = fold(before).words, fold(after).words
    if old == new:
        return _COSMETIC
    return _LEAST + (1.0 - _LEAST) * Levenshtein.normalized_distance(old, new)


def _refined(answer: str, parts: list[Extent], after: str) -> list[Extent]:
    """Mark what changed inside words, where old and new are mostly the same."""
    start, end = parts[0].start, parts[-1].end
    before = answer[start:end]
    blocks = Characters.matching_blocks(Characters.editops(before, after), len(before), len(after))
    kept = [
        (i, i + size)
        for i, j, size in blocks
        if size >= _RUN or (size and (i == j == 0 or i + size == len(before)))
    ]
    if sum(b - a for a, b in kept) < _KEPT * max(len(before), len(after)):
        return [Extent(start, end)]
    letters = whole(before, [Extent(at, at + 1) for at in range(len(before))])
    edges = [letter.start for letter in letters] + [len(before)]
    marks: list[Extent] = []
    position = 0
    for a, b in [*kept, (len(before), len(before))]:
        if a > position:
            low = edges[bisect_right(edges, position) - 1]
            text = before[low : edges[bisect_left(edges, a)]]
            low += len(text) - len(text.lstrip())
            if text := text.strip():
                marks.append(Extent(start + low, start + low + len(text)))
        position = b
    return marks or [Extent(start, end)]


def _neighbour(answer: str, old: list[Extent], change: Change) -> Extent:
    """Return the word before an insertion, else the one after it; a mark if there is no word."""
    at = change.old_start
    near = [index for index in (at - 1, at, at - 2, at + 1) if 0 <= index < len(old)]
    return old[next((at for at in near if answer[old[at].start].isalnum()), near[0])]


def _apart(spans: list[MappedSpan]) -> tuple[MappedSpan, ...]:
    """Drop marks of insertions where a change is marked already; keep order and no overlap."""
    kept: list[MappedSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end, -span.prob)):
        if span.end > span.start and (not kept or span.start >= kept[-1].end):
            kept.append(span)
    return tuple(kept)

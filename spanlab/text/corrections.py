"""Changes of a corrected answer as spans.

After the minimal-cost revision of Huang et al. (2025), "UCSC at SemEval-2025 Task 3": a model
corrects the answer with as few changes as it can, and the words it deleted or replaced are taken
for hallucinated. Ours differs in what a word is (the rules of the answer's language, one character
where no space parts words) and in that a repeated word stays at its own place, because whole
sequences of words are aligned.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import Levenshtein as Characters
from rapidfuzz.distance import Levenshtein

from spanlab.text.extents import Extent
from spanlab.text.quotes import MappedSpan
from spanlab.text.terms import fold, whole
from spanlab.text.tokens import tokens

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


def _neighbour(answer: str, old: list[Extent], change: WordChange) -> Extent:
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


# Bit-parallel edit distance costs old x new / 64; above this many cells texts are cut first.
_CELLS: Final = 2_000_000
_CHUNK: Final = 1_000  # words between two cuts
_GRAM: Final = 4  # words that must stand once on both sides for a cut to be safe


class WordChange(NamedTuple):
    """Words ``[old_start, old_end)`` became words ``[new_start, new_end)``; one may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changes(old: Sequence[str], new: Sequence[str]) -> list[WordChange]:
    """Return the changes that turn the words ``old`` into ``new``, with the fewest words changed.

    Long texts are first cut where four words in a row occur once on both sides, in the longest
    such series that keeps its order. A stretch without any such place is rewritten anyway and is
    cut in proportion, so that time grows with length and not with its square.

    Returns:
        Maximal changes in order, with at least one equal word between two; empty if the texts
        are the same.
    """
    word_changes: list[WordChange] = []
    _align(old, new, WordChange(0, len(old), 0, len(new)), word_changes)
    return _tidy(word_changes)


def settle(
    word_changes: Sequence[WordChange], old: Sequence[str], fit: Callable[[int, int], int]
) -> list[WordChange]:
    """Choose among equivalent places of a deletion, such as in "the old the new".

    Deleting "the old" or "old the" gives the same text. A deletion moves to a neighbouring change
    if it can reach it, which makes one change of two; else to the place that fits best: ``fit``
    rates words ``[start, end)`` as a deletion, and the first of equals wins.
    """
    settled: list[WordChange] = []
    for index, change in enumerate(word_changes):
        before = settled[-1].old_end if settled else 0
        after = word_changes[index + 1].old_start if index + 1 < len(word_changes) else len(old)
        deletion = change.new_start == change.new_end
        settled.append(_slide(change, old, (before, after), fit) if deletion else change)
    return _tidy(settled)


def _align(
    old: Sequence[str], new: Sequence[str], part: WordChange, word_changes: list[WordChange]
) -> None:
    a, b, c, d = part
    while a < b and c < d and old[a] == new[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
    if a == b or c == d:
        if (a, c) != (b, d):
            word_changes.append(WordChange(a, b, c, d))
    elif (b - a) * (d - c) <= _CELLS:
        word_changes.extend(
            WordChange(a + op.src_start, a + op.src_end, c + op.dest_start, c + op.dest_end)
            for op in Levenshtein.opcodes(old[a:b], new[c:d])
            if op.tag != "equal"
        )
    else:
        for piece in _cut(old, new, WordChange(a, b, c, d)):
            _align(old, new, piece, word_changes)


def _cut(old: Sequence[str], new: Sequence[str], part: WordChange) -> list[WordChange]:
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
    return [WordChange(i, k, j, m) for (i, j), (k, m) in pairwise(cuts)]


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
    change: WordChange, old: Sequence[str], limits: tuple[int, int], fit: Callable[[int, int], int]
) -> WordChange:
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
    return WordChange(start + by, end + by, change.new_start + by, change.new_end + by)


def _tidy(word_changes: Sequence[WordChange]) -> list[WordChange]:
    """Join changes that touch."""
    joined: list[WordChange] = []
    for change in word_changes:
        last = joined[-1] if joined else None
        if last and (last.old_end, last.new_end) == (change.old_start, change.new_start):
            joined[-1] = last._replace(old_end=change.old_end, new_end=change.new_end)
        else:
            joined.append(change)
    return joined

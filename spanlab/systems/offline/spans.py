"""Probabilities of words to phrases and spans.

The model rates word by word. But nobody marks half a name, or leaves out the "of" in the middle of
a wrong one: it costs something to go from marked to not marked and back inside a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.systems.offline.features import AnswerFeatures
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.words import TokenizedText, WordKind

# Set on Mu-SHROOM's validation set, each language with models of the others.
FLOOR = 0.38  # hallucinated from this probability on …
SHARE = 0.52  # … and from this share of the answer's most probable word
_CHANGE = 0.2  # what an edge of a phrase costs: so many characters of the most probable word
_IN_NAME = 4.0  # how much more it costs between two words of a name
_ANYONE = 0.3  # other words are spans where this probable that anyone marks them at all, …
_ANYONE_SHARE = 0.4  # … from this share of the answer's likeliest word
_QUIET = 0.2  # … and this share of its most probable word on
_FAINT = 0.2  # an answer all of whose words are below this probability is correct: no spans
_BAND = 0.05  # words of one span differ by no more, so that its one probability speaks for all
_WORD = 4  # signs that may be one word
_LISTED = re.compile(r"[.):]\s|\s?[-–]\s")  # what follows the number of a list's line
_CONFIRMED = 0.5  # what is left of the probability of a part of a date that the passages have


class WordStretch(NamedTuple):
    """The words ``[first, last]``, their characters ``[start, end)``, and how they are rated."""

    first: int
    last: int
    start: int
    end: int
    prob: float
    hard: bool


def stretches(described: AnswerFeatures, probs: Column, anyone: Column) -> list[WordStretch]:
    """Decide which words are hallucinated, and join neighbours that are about equally probable.

    Characters between two words of a stretch belong to it, those between two stretches to the
    less probable one, but no stretch begins with punctuation. ``probs`` and ``anyone`` are the
    ``WordProbabilities``, in [0, 1].

    Returns:
        Stretches in order, without overlap, none in an answer that seems correct. Their
        probability is the mean over their words' characters, ``hard`` whether all of them are
        taken for hallucinated.
    """
    words = described.answer
    probs, anyone = _units(described, probs), _units(described, anyone)
    top = float(probs.max(initial=0.0))
    if top < _FAINT:
        return []
    cost = _edges(words)
    hard = _phrases(words, probs / top - max(FLOOR / top, SHARE), cost)
    likely = anyone >= max(_ANYONE, _ANYONE_SHARE * float(anyone.max()))
    loud = hard | (likely & (probs >= _QUIET * top))
    if not hard.any() and described.stop[loud].all():
        return []
    values, is_hard = probs.tolist(), hard.tolist()
    stretches_found = [
        WordStretch(
            first,
            last,
            words.starts[first],
            words.ends[last],
            _mean(words, values, first, last),
            is_hard[first],
        )
        for first, last in _runs(values, is_hard, loud.tolist(), cost)
    ]
    return _with_gaps(words.text, stretches_found)


def _units(described: AnswerFeatures, probs: Column) -> Column:
    """Doubt confirmed parts of dates and numbers of lists less, and signs of one word alike.

    A short run of signs that nothing knows is a word, as probable as its likeliest sign; two with
    a stop word between them, which may be a part of either, are one.
    """
    words, probs = described.answer, probs.copy()
    probs[sorted(described.confirmed)] *= _CONFIRMED
    for at in _list_numbers(words):
        probs[at] = min(probs[at], *probs[max(at - 1, 0) : at + 2])
    unknown = [
        kind is WordKind.SIGN and not known
        for kind, known in zip(words.kinds, described.known, strict=True)
    ]
    first, before = 0, (0, -2)
    for at in range(len(words)):
        if not unknown[at]:
            first = at + 1
            continue
        if at + 1 < len(words) and unknown[at + 1] and _belong(words, at + 1):
            continue
        if at - first < _WORD:
            joins = before[1] == first - 2 and described.stop[first - 1] and _belong(words, first)
            unit = slice(before[0] if joins else first, at + 1)
            probs[unit] = probs[unit].max()
            before = unit.start, at
        first = at + 1
    return probs


def _list_numbers(words: TokenizedText) -> Iterator[int]:
    """Yield the numbers of a list's lines, which state nothing: "2. Vienna"."""
    for at, kind in enumerate(words.kinds):
        before = words.text[words.ends[at - 1] if at else 0 : words.starts[at]]
        begins = kind is WordKind.NUMBER and (not at or "\n" in before)
        if begins and _LISTED.match(words.text, words.ends[at]):
            yield at


def _phrases(words: TokenizedText, excess: Column, cost: list[float]) -> NDArray[np.bool_]:
    """Choose the words to mark so that the excess of their characters, less the cost, is most.

    ``excess`` is how far each word's probability is above what is marked; ``cost`` is that of an
    edge before it. The best choice up to each word is kept for either state (Viterbi 1967).
    """
    lengths = np.array(words.ends) - np.array(words.starts)
    unmarked, marked = 0.0, 0.0
    changes: list[tuple[bool, bool]] = []  # whether it is better to come from the other state
    for gain, edge in zip((lengths * excess).tolist(), cost, strict=True):
        changes.append((marked - edge > unmarked, unmarked - edge > marked))
        unmarked, marked = max(unmarked, marked - edge), max(marked, unmarked - edge) + gain
    state, chosen = marked > unmarked, []
    for change in reversed(changes):
        chosen.append(state)
        state ^= change[state]
    hard = np.array(chosen[::-1], dtype=bool)
    return hard if hard.any() else excess >= 0


def _edges(words: TokenizedText) -> list[float]:
    """Return what an edge of a phrase costs before each word.

    It costs nothing between sentences, and after the number of a list's line.
    """
    free = {at + 1 for at in _list_numbers(words)}
    return [0.0] + [
        _CHANGE * (_IN_NAME if _belong(words, at) else 1.0)
        if words.sentence[at] == words.sentence[at - 1] and at not in free
        else 0.0
        for at in range(1, len(words))
    ]


def _belong(words: TokenizedText, at: int) -> bool:
    """Return whether a word and the one before are parts of one name or of one word."""
    between = words.text[words.ends[at - 1] : words.starts[at]]
    if words.kinds[at] is WordKind.SIGN:
        return words.kinds[at - 1] is WordKind.SIGN and not between
    return words.capital(at) and words.capital(at - 1) and between in (" ", "-", "’", "'")


def decided(rated: list[WordStretch]) -> list[tuple[int, int]]:
    """Return the hallucinated characters: hard stretches, touching ones joined."""
    merged: list[tuple[int, int]] = []
    last: int | None = None
    for stretch in (stretch for stretch in rated if stretch.hard):
        if last == stretch.first - 1:
            merged[-1] = (merged[-1][0], stretch.end)
        else:
            merged.append((stretch.start, stretch.end))
        last = stretch.last
    return merged


def _runs(
    probs: list[float], hard: list[bool], loud: list[bool], cost: list[float]
) -> Iterator[tuple[int, int]]:
    """Yield first and last word of each stretch; names are not cut for their probabilities."""
    first: int | None = None
    low = high = 0.0
    for at, prob in enumerate(probs):
        low, high = min(low, prob), max(high, prob)
        wide = high - low > _BAND and cost[at] <= _CHANGE
        apart = first is not None and (hard[at] != hard[first] or wide)
        if first is not None and (not loud[at] or apart):
            yield first, at - 1
            first = None
        if first is None and loud[at]:
            first, low, high = at, prob, prob
    if first is not None:
        yield first, len(probs) - 1


def _mean(words: TokenizedText, probs: Sequence[float], first: int, last: int) -> float:
    inside = range(first, last + 1)
    lengths = [words.ends[at] - words.starts[at] for at in inside]
    total = sum(probs[at] * length for at, length in zip(inside, lengths, strict=True))
    return round(total / sum(lengths), 3)


def _with_gaps(text: str, rated: list[WordStretch]) -> list[WordStretch]:
    """Let the less probable of two touching stretches reach up to the other."""
    joined: list[WordStretch] = []
    for stretch in rated:
        before = joined[-1] if joined else None
        if before is None or before.last != stretch.first - 1:
            joined.append(stretch)
        elif before.prob < stretch.prob:
            joined[-1] = before._replace(end=stretch.start)
            joined.append(stretch)
        elif text[before.end : stretch.start].isspace():
            joined.append(stretch._replace(start=before.end))
        else:
            joined.append(stretch)
    return joined

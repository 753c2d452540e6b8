"""Every quote of a model to its own place in the answer, in the order given.

Huang et al. (2025), "UCSC at SemEval-2025 Task 3", let a model quote what is hallucinated and look
the quotes up. Looking up the first occurrence puts a repeated word in the wrong place; here all
quotes are placed together (``assignment``), after every place of each is known (``occurrences``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.text.extents import Extent
from spanlab.text.occurrences import QuoteFinder

FLOOR: Final = 0.85


def map_quotes(answer: str, quotes: Sequence[ModelQuote], *, floor: float = FLOOR) -> QuoteMapping:
    """Find the place in ``answer`` of every quote.

    A place is used once: a quote given more often than it occurs is a duplicate. Quotes may
    overlap only if their words differ (one inside the other, or sharing a word at an edge). A
    quote that stands more than once goes where its words ``before`` stand before it, if it has any.

    Args:
        answer: the text as it is; offsets are code points of it.
        quotes: in the order in which the model gave them. A quote without ``prob`` counts 1.0.
        floor: how alike a quote and its place must be, in [0, 1]; ``QuoteFinder.find`` lists the
            scores. 1.0 accepts only quotes that are there word for word.

    Returns:
        The places found, and the quotes that were not; empty for no quotes.
    """
    finder = QuoteFinder(answer, floor)
    candidates = [finder.find(quote.text) for quote in quotes]
    places = assign(
        [
            finder.preceded(occurrences.places, quote.before)
            for occurrences, quote in zip(candidates, quotes, strict=True)
        ]
    )
    mapped = tuple(
        MappedQuote(index, (place,), candidates[index].score)
        for index, place in enumerate(places)
        if place is not None
    )
    missing = [index for index, place in enumerate(places) if place is None]
    return QuoteMapping(
        mapped,
        spans_of(mapped, quotes),
        unmatched=tuple(index for index in missing if not candidates[index].places),
        duplicates=tuple(index for index in missing if candidates[index].places),
    )


def spans_of(mapped: Sequence[MappedQuote], quotes: Sequence[ModelQuote]) -> tuple[MappedSpan, ...]:
    """Return the places of quotes as spans with the quotes' probabilities, sorted by place."""
    return tuple(
        sorted(
            MappedSpan(start, end, 1.0 if prob is None else prob, placed.quote)
            for placed in mapped
            for prob in (quotes[placed.quote].prob,)
            for start, end in placed.places
        )
    )


class ModelQuote(NamedTuple):
    """Words that a model quotes from the answer, how sure it is, and why.

    ``prob`` in [0, 1] is the model's own probability that they are hallucinated, None if it gave
    none. ``before`` are the words that stand right before the quote in the answer: of several
    places of the quote, those count before which most of them stand; None or no match leaves all.
    """

    text: str
    prob: float | None = None
    reason: str | None = None
    before: str | None = None


class MappedQuote(NamedTuple):
    """A quote (by its 0-based index) that was found.

    ``places`` are its characters of the answer, in order, several where other words lie between;
    ``score`` in (0, 1] says how alike quote and answer are, 1.0 being word for word.
    """

    quote: int
    places: tuple[Extent, ...]
    score: float


class MappedSpan(NamedTuple):
    """Characters ``[start, end)`` of the answer that are hallucinated with probability ``prob``.

    ``quote`` is the index of the quote they come from, None where no quote was given (a revision).
    """

    start: int
    end: int
    prob: float
    quote: int | None = None


@dataclass(frozen=True)
class QuoteMapping:
    """The places of quotes in an answer.

    ``mapped`` holds one entry per quote that was found, in the order of the quotes; ``spans`` the
    same by place. ``unmatched`` are the indices of quotes that were not found, ``duplicates`` of
    those whose places all belong to other quotes.
    """

    mapped: tuple[MappedQuote, ...]
    spans: tuple[MappedSpan, ...]
    unmatched: tuple[int, ...] = ()
    duplicates: tuple[int, ...] = ()


_PAIRS: Final = 4_000_000  # quotes x places that are weighed; bounds memory, not a real answer
Ints = NDArray[np.int64]
Places = tuple[Extent, ...]


def assign(candidates: Sequence[Places]) -> list[Extent | None]:
    """Give every quote a place of its own.

    Quotes that occur only once keep their place to themselves where others have enough places
    elsewhere. Then the longest series of quotes that can stand in the order given without overlap
    is placed, such that the way through them from the answer's start is shortest; quotes with as
    few places as there are quotes for them count twice. Each other quote, out of order or inside
    another, then takes the place nearest to its neighbours in the order given: a free one that
    overlaps no other quote, or else one inside, around or across a quote of other words. The
    cost is quotes x places.

    Args:
        candidates: per quote its places, sorted. Quotes of the same words have the same places.
            Beyond four million pairs of quote and place, only the first places of each count.

    Returns:
        Per quote its place; None if it has none, or if all are taken.
    """
    if len(candidates) == 1:  # the first place; of several with the same end the shortest
        return [min({place.end: place for place in candidates[0]}.values(), default=None)]
    if _undisputed(candidates):
        return [places[0] if places else None for places in candidates]
    limit = max(len(candidates), _PAIRS // max(len(candidates), 1))
    kinds = _kinds(candidates)
    candidates = _apart_from_certain([places[:limit] for places in candidates], kinds)
    chosen: list[Extent | None] = [None] * len(candidates)
    for quote, place in _chain(candidates, kinds):
        chosen[quote] = place
    _place_others(candidates, kinds, chosen)
    return chosen


def _undisputed(candidates: Sequence[Places]) -> bool:
    """Return whether no quote has a choice and none overlap, as in most answers of a model."""
    if any(len(places) > 1 for places in candidates):
        return False
    taken = sorted(places[0] for places in candidates if places)
    return all(first.end <= second.start for first, second in pairwise(taken))


def _kinds(candidates: Sequence[Places]) -> list[int]:
    """Return a number per quote, the same for quotes with the same places."""
    numbers: dict[int, int] = {}  # by identity first: hashing 20,000 places takes milliseconds
    equal: dict[Places, int] = {}
    for places in candidates:
        if id(places) not in numbers:
            numbers[id(places)] = equal.setdefault(places, len(equal))
    return [numbers[id(places)] for places in candidates]


def _apart_from_certain(candidates: Sequence[Places], kinds: Sequence[int]) -> list[Places]:
    """Leave out places inside quotes that occur only once, where enough others remain."""
    certain = [places[0] for places in candidates if len(places) == 1]
    starts = sorted(place.start for place in certain)
    ends = sorted(place.end for place in certain)
    rivals = Counter(kinds)
    apart: dict[int, Places] = {}
    for places, kind in zip(candidates, kinds, strict=True):
        if kind in apart:
            continue
        free = [p for p in places if bisect_left(starts, p.end) <= bisect_right(ends, p.start)]
        enough = len(places) > 1 and len(free) >= rivals[kind]
        apart[kind] = tuple(free) if enough else places
    return [apart[kind] for kind in kinds]


def _chain(candidates: Sequence[Places], kinds: Sequence[int]) -> list[tuple[int, Extent]]:
    """Place the best series of quotes that keeps the order given."""
    arrays = {
        kind: np.array(places, dtype=np.int64).reshape(-1, 2)
        for kind, places in dict(zip(kinds, candidates, strict=True)).items()
    }
    bounds = [arrays[kind] for kind in kinds]
    if not any(len(bound) for bound in bounds):
        return []
    rivals = Counter(kinds)
    ends = np.unique(np.concatenate([bound[:, 1] for bound in arrays.values()]))
    unit = 2 * int(ends[-1]) + 2  # one more quote is worth more than any movement
    # best[p]: worth of the best series that ends at ends[p], plus ends[p], so that the way on from
    # there to `start` costs `start` alone; owner[p]: which pair of quote and place ends it.
    best: Ints = np.full(len(ends), -1, dtype=np.int64)
    owner: Ints = np.full(len(ends), -1, dtype=np.int64)
    order = np.arange(len(ends))
    offsets: list[int] = [0]
    parents: list[Ints] = []
    for kind, bound in zip(kinds, bounds, strict=True):
        top = np.maximum.accumulate(best)
        rises = np.append([True], top[1:] > top[:-1])
        leader = np.maximum.accumulate(np.where(rises, order, 0))  # the first of equals
        at = np.searchsorted(ends, bound[:, 0], side="right") - 1
        reached = (at >= 0) & (top[np.maximum(at, 0)] >= 0)
        certain = len(bound) <= rivals[kind]
        gain = unit * (2 if certain else 1)
        worth = gain - bound[:, 0] + np.where(reached, top[np.maximum(at, 0)], 0)
        parents.append(np.where(reached, owner[leader[np.maximum(at, 0)]], -1))
        total = worth + bound[:, 1]
        where = np.searchsorted(ends, bound[:, 1])
        better = total > best[where]
        best[where[better]] = total[better]
        owner[where[better]] = offsets[-1] + np.flatnonzero(better)
        offsets.append(offsets[-1] + len(bound))
    return _trace_back(candidates, offsets, parents, int(owner[np.argmax(best - ends)]))


def _trace_back(
    candidates: Sequence[Places], offsets: list[int], parents: list[Ints], last: int
) -> list[tuple[int, Extent]]:
    chain: list[tuple[int, Extent]] = []
    while last >= 0:
        quote = bisect_right(offsets, last) - 1
        chain.append((quote, candidates[quote][last - offsets[quote]]))
        last = int(parents[quote][last - offsets[quote]])
    return chain[::-1]


def _place_others(
    candidates: Sequence[Places], kinds: Sequence[int], chosen: list[Extent | None]
) -> None:
    """Place the quotes that the series left out, those with the least choice first."""
    placed = [index for index, place in enumerate(chosen) if place is not None]
    taken = {place for place in chosen if place is not None}
    same = {(kinds[index], place) for index, place in enumerate(chosen) if place is not None}
    starts = sorted(place.start for place in taken)
    ends = sorted(place.end for place in taken)
    waiting = [index for index, place in enumerate(chosen) if place is None and candidates[index]]
    for index in sorted(waiting, key=lambda index: (len(candidates[index]), index)):
        places = candidates[index]
        bound = np.array(places, dtype=np.int64)
        over = np.searchsorted(starts, bound[:, 1]) - np.searchsorted(ends, bound[:, 0], "right")
        before = bisect_left(placed, index)
        cost = _movement(bound, chosen, placed, before)
        ranked = np.lexsort((bound[:, 0], cost, over > 0))
        for choice in ranked.tolist():
            place = places[choice]
            if place in taken or (
                over[choice] and _crosses_its_like(place, places, kinds[index], same)
            ):
                continue
            chosen[index] = place
            taken.add(place)
            same.add((kinds[index], place))
            insort(starts, place.start)
            insort(ends, place.end)
            placed.insert(before, index)
            break


def _movement(bound: Ints, chosen: Sequence[Extent | None], placed: list[int], before: int) -> Ints:
    """Return how far each place is from the quotes before and after it in the order given."""
    cost: Ints = np.zeros(len(bound), dtype=np.int64)
    earlier = chosen[placed[before - 1]] if before else None
    later = chosen[placed[before]] if before < len(placed) else None
    if earlier is not None:
        cost += np.abs(bound[:, 0] - earlier.end)
    if later is not None:
        cost += np.abs(later.start - bound[:, 1])
    return cost


def _crosses_its_like(
    place: Extent, places: Places, kind: int, same: set[tuple[int, Extent]]
) -> bool:
    """Return whether a place overlaps one that a quote of the same words has."""
    near = bisect_left(places, (place.start - (place.end - place.start), 0))
    for other in places[near:]:
        if other.start >= place.end:
            return False
        if other.end > place.start and (kind, other) in same:
            return True
    return False

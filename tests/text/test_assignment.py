"""Places of quotes are those that a search of all series finds, then the nearest that are left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

import pytest

from spanlab.text.extents import Extent
from spanlab.text.quotes import Places, assign

Series = tuple[tuple[int, Extent], ...]
_CASES = 1500


def _overlap(one: Extent, other: Extent) -> bool:
    return one.start < other.end and other.start < one.end


def _freed(candidates: Sequence[Places]) -> list[Places]:
    """Candidates without places inside quotes that stand once, where enough others remain."""
    certain = [places[0] for places in candidates if len(places) == 1]
    freed = []
    for places in candidates:
        free = tuple(p for p in places if not any(_overlap(p, other) for other in certain))
        enough = len(places) > 1 and len(free) >= list(candidates).count(places)
        freed.append(free if enough else places)
    return freed


def _all_series(candidates: Sequence[Places], start: int = 0, end: int = 0) -> Iterator[Series]:
    """All series of quotes in the order given, none of which overlap."""
    yield ()
    for index in range(start, len(candidates)):
        for place in candidates[index]:
            if place.start >= end:
                for rest in _all_series(candidates, index + 1, place.end):
                    yield ((index, place), *rest)


def _worth(
    series: Series, candidates: Sequence[Places], kinds: Sequence[Places]
) -> tuple[int, int]:
    """How many quotes a series has, those without a choice twice; and minus the way through it."""
    count = sum(
        2 if len(candidates[index]) <= list(kinds).count(kinds[index]) else 1 for index, _ in series
    )
    ends = [0, *(place.end for _, place in series)]
    return count, -sum(place.start - end for (_, place), end in zip(series, ends, strict=False))


def _searched(candidates: Sequence[Places]) -> list[Extent | None] | None:
    """The places that the rules give; None where two series are worth the same."""
    kinds, freed = list(candidates), _freed(candidates)
    ranked = sorted(
        (_worth(series, freed, kinds), series) for series in set(_all_series(freed)) if series
    )
    if len(ranked) > 1 and ranked[-1][0] == ranked[-2][0]:
        return None
    chosen: list[Extent | None] = [None] * len(candidates)
    for index, place in ranked[-1][1]:
        chosen[index] = place
    waiting = [index for index, place in enumerate(chosen) if place is None and freed[index]]
    for index in sorted(waiting, key=lambda index: (len(freed[index]), index)):
        earlier = next((p for p in reversed(chosen[:index]) if p), None)
        later = next((p for p in chosen[index:] if p), None)

        def rank(place: Extent) -> tuple[bool, int, int]:
            way = abs(place.start - earlier.end) if earlier else 0  # noqa: B023 - used at once
            way += abs(later.start - place.end) if later else 0  # noqa: B023
            return any(p and _overlap(p, place) for p in chosen), way, place.start

        alike = [p for p, kind in zip(chosen, kinds, strict=True) if p and kind == kinds[index]]
        open_places = [
            place
            for place in freed[index]
            if place not in chosen and not any(_overlap(place, other) for other in alike)
        ]
        chosen[index] = min(open_places, key=rank, default=None)
    return chosen


def _drawn(random: Random) -> list[Places]:
    """Quotes as a model may give them: up to five of two or three, with up to four places each."""
    kinds = []
    for _ in range(random.randint(1, 3)):
        length = random.randint(1, 5)
        starts = sorted(random.sample(range(30), random.randint(1, 4)))
        apart = [starts[0], *(b for a, b in pairwise(starts) if b - a >= length)]
        kinds.append(tuple(Extent(start, start + length) for start in apart))
    return [random.choice(kinds) for _ in range(random.randint(2, 5))]


def test_places_are_those_that_a_search_of_all_series_finds() -> None:
    random, clear, left = Random(7), 0, 0
    for _ in range(_CASES):
        candidates = _drawn(random)
        if (expected := _searched(candidates)) is not None:
            assert assign(candidates) == expected, candidates
            clear += 1
            left += None in expected
    assert clear > _CASES / 3
    assert left > _CASES / 20


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([(3, 9), (5, 9), (12, 14)], (5, 9), id="the shortest of one end"),
    ],
)
def test_a_quote_alone_takes_its_first_place(
    places: list[tuple[int, int]], expected: tuple[int, int] | None
) -> None:
    assert assign([tuple(Extent(*place) for place in places)]) == [expected]

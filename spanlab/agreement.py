"""Agreement of annotators of the same items on which characters are hallucinated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import krippendorff
import numpy as np

from spanlab.errors import InputError
from spanlab.fields import Frozen
from spanlab.labels import Extent, coverage, hard_of, iou
from spanlab.schema import Kind, Record, Status


@dataclass(frozen=True)
class ItemMarks:
    """One item under several annotators.

    ``marks`` holds the merged extents of each annotator that finished the item (none if it found
    nothing); an annotator that did not finish it has no entry. ``length`` counts the answer's
    characters.
    """

    id: str
    lang: str
    length: int
    marks: Mapping[str, Sequence[Extent]]


class Pair(Frozen):
    """Two annotators on the ``n`` items that both finished, ``a`` before ``b`` by name.

    ``iou`` and ``f1`` are means over those items of the characters' intersection over union and
    of 2·|common| / (|marked by a| + |marked by b|), which does not depend on who counts as right.
    1 is the same characters on every item, 0 none in common; an item where both marked nothing
    counts 1, where one of them did 0.
    """

    a: str
    b: str
    n: int
    iou: float
    f1: float


class LanguageAgreement(Frozen):
    """Krippendorff's alpha on the ``n`` items of one language with two or more annotators."""

    lang: str
    n: int
    alpha: float | None


class Agreement(Frozen):
    """Agreement on the ``n`` items that two or more annotators finished.

    ``alpha`` is Krippendorff's alpha over characters, marked or not marked; annotators may have
    done only some of the items. 1 is perfect agreement, 0 what marking at random in the same
    proportions would give, below 0 systematic disagreement. None where it is undefined: no
    item has two annotators, or all of them marked everything, or all of them nothing.
    """

    n: int
    alpha: float | None
    languages: tuple[LanguageAgreement, ...]
    pairs: tuple[Pair, ...]


def rated(record: Record, annotators: Iterable[str] | None = None) -> ItemMarks:
    """Return the marks of those ``annotators`` (None: of all persons) that finished an item."""
    wanted = None if annotators is None else set(annotators)
    return ItemMarks(
        id=record.item.id,
        lang=record.item.lang,
        length=len(record.item.answer),
        marks={
            one.annotator: hard_of(one)
            for one in record.annotations
            if one.status is Status.DONE
            and (one.kind is Kind.PERSON if wanted is None else one.annotator in wanted)
        },
    )


def agreement(items: Iterable[ItemMarks]) -> Agreement:
    """Measure the agreement of annotators on a stream of items, each id once.

    Alpha: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", nominal data, one unit
    per character. Stretches that the same number of annotators mark are counted, not spelled out,
    so the cost follows the number of spans and of disputed characters. Of more than a million
    disputed characters, all counts are scaled down to a million: alpha is then right to 4 digits.

    Returns:
        The agreement; without any item that two annotators finished, 0 items and no pairs.

    Raises:
        InputError: marks reach past the item's answer; names the id.
    """
    units: dict[str, Counter[_Unit]] = {}
    counts: Counter[str] = Counter()
    pairs: dict[tuple[str, str], _PairSums] = {}
    for item in items:
        for annotator, extents in item.marks.items():
            if extents and extents[-1].end > item.length:
                raise InputError(
                    f"item {item.id!r}: the marks of {annotator!r} reach past the answer",
                    found=extents[-1].end,
                    expected=f"at most {item.length}, the answer's length in characters",
                )
        if len(item.marks) < 2:
            continue
        counts[item.lang] += 1
        units.setdefault(item.lang, Counter()).update(_units(item))
        for a, b in combinations(sorted(item.marks), 2):
            pairs.setdefault((a, b), _PairSums()).add(item.marks[a], item.marks[b])
    return Agreement(
        n=counts.total(),
        alpha=_alpha(sum(units.values(), Counter())),
        languages=tuple(
            LanguageAgreement(lang=lang, n=counts[lang], alpha=_alpha(units[lang]))
            for lang in sorted(units)
        ),
        pairs=tuple(sums.pair(a, b) for (a, b), sums in sorted(pairs.items())),
    )


_Unit = tuple[int, int]  # how many annotators marked a character and how many left it
_ROWS = 1_000_000  # disputed characters that the library is given; it takes some 150 bytes for each


@dataclass
class _PairSums:
    """Running sums of one pair of annotators."""

    n: int = 0
    iou: float = 0.0
    f1: float = 0.0

    def add(self, a: Sequence[Extent], b: Sequence[Extent]) -> None:
        shared = iou(a, b)
        self.n += 1
        self.iou += shared
        self.f1 += 2 * shared / (1 + shared)  # the same two sets of characters, so the same sums

    def pair(self, a: str, b: str) -> Pair:
        return Pair(a=a, b=b, n=self.n, iou=self.iou / self.n, f1=self.f1 / self.n)


def _units(item: ItemMarks) -> Counter[_Unit]:
    """How many characters of the item were marked by how many of its annotators."""
    marks = list(item.marks.values())
    units: Counter[_Unit] = Counter()
    covered = 0
    for start, end, marked in coverage(marks, [1] * len(marks)):
        units[marked, len(marks) - marked] += end - start
        covered += end - start
    units[0, len(marks)] += item.length - covered
    return units


def _alpha(units: Counter[_Unit]) -> float | None:
    marked = sum(by * characters for (by, _), characters in units.items())
    left = sum(by * characters for (_, by), characters in units.items())
    if marked == 0 or left == 0:
        return None
    # A character on which m annotators agree adds m to its cell of the coincidence matrix, and so
    # does one row (m, 0) per character or one row with their sum: agreement needs two rows.
    # Disagreement has no such short form, its rows are repeated.
    agreed = [0, 0]
    disputed: dict[_Unit, int] = {}
    for (yes, no), characters in units.items():
        if yes and no:
            disputed[yes, no] = characters
        else:
            agreed[0 if yes else 1] += (yes + no) * characters
    scale = max(1.0, sum(disputed.values()) / _ROWS)
    rows = [(round(agreed[0] / scale), 0), (0, round(agreed[1] / scale)), *disputed]
    repeats = [1, 1, *(round(characters / scale) for characters in disputed.values())]
    counts = np.repeat(np.array(rows, dtype=np.int64), repeats, axis=0)
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))

"""What a stated number leaves open: "over 20" is no contradiction to 35, nor 1960 to 1963."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import NamedTuple

from spanlab.systems.offline.neighbours import folded, year
from spanlab.systems.offline.words import readings

_ABOVE = folded(
    "over above more least exceeding uber mehr mindestens plus moins superieur mas menos superior "
    "piu oltre almeno superiore mes almenys mer over minst yli enemman vahintaan pres vice nejmene "
    "gehiago gutxienez 超 逾 अधिक ज्यादा أكثر الأقل بیش حداقل"
)  # "moins", "menos" and the like stand in "at least" and in "less": neither refutes then
_BELOW = folded(
    "under below less fewer most up unter weniger hochstens moins inferieur jusqu menos inferior "
    "hasta meno fino fins menys mindre hogst upp alle mene nejvyse gutxiago कम أقل کمتر"
)
_ABOUT = folded(
    "about around approximately nearly almost roughly some circa ca etwa rund ungefahr fast env "
    "environ presque pres aproximadamente alrededor unos casi quasi cirka ungefar nastan noin "
    "lahes zhruba asi temer aproximadament gairebe inguru 约 近 लगभग करीब حوالي نحو تقريبا حدود"
)
_ABOUT_REACH = 0.04  # share of a number that "about" leaves open
_ROUND_FROM = 3  # digits of a number that may be rounded to its last digit that is not zero
_DECADE = 9  # years that 1960 may stand for besides itself


class Amount(NamedTuple):
    """The lowest and the highest value that a stated number may mean."""

    low: float
    high: float


def contradict(written: str, around: Collection[str], other: str, beside: Collection[str]) -> bool:
    """Return whether no value fits two numbers as they are written.

    ``around`` and ``beside`` are the forms of the words around the one and the other, which may
    compare them.
    """
    return all(
        mine.high < its.low or its.high < mine.low
        for mine in _amounts(written, around)
        for its in _amounts(other, beside)
    )


def _amounts(written: str, around: Collection[str]) -> list[Amount]:
    """Return what a number may state, one amount for each way to read it."""
    above, below = not _ABOVE.isdisjoint(around), not _BELOW.isdisjoint(around)
    about = 0.0 if _ABOUT.isdisjoint(around) else _ABOUT_REACH
    amounts = []
    for digits in readings(written):
        value = float(digits)
        if year(f"#{digits}"):
            amounts.append(Amount(value, value + (0 if value % 10 else _DECADE)))
        elif above or below:
            amounts.append(Amount(-inf if below else value, inf if above else value))
        else:
            whole = len(digits) >= _ROUND_FROM and "." not in digits
            rounded = 10 ** (len(digits) - len(digits.rstrip("0"))) / 2 if whole else 0.0
            reach = max(rounded, about * value)
            amounts.append(Amount(value - reach, value + reach))
    return amounts

"""Sums, comparisons and dates of a step computed again: what of them is wrong, without a model."""

from __future__ import annotations

import operator
import re
from calendar import month_name
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal, DivisionByZero, InvalidOperation
from typing import Final, NamedTuple

_VALUE = r"\d[\d,]{0,20}(?:\.\d{1,9})?"
_NOT_WITHIN = r"(?<![\w.,/:-])"  # a date, a version, a range
_ENDS = r"(?!\w|[.,/-]\d|\s*(?:[-+*/÷×=%]|(?:million|billion|trillion|thousand)\b))"

_SUM = re.compile(
    rf"{_NOT_WITHIN}({_VALUE})\s*([-+−–*×x·/÷])\s*({_VALUE})\s*(?:=|equals|is equal to)\s*"
    rf"([-−]?{_VALUE}){_ENDS}"
)

_OPERATORS: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    **dict.fromkeys("+", operator.add),
    **dict.fromkeys("-−–", operator.sub),
    **dict.fromkeys("*×x·", operator.mul),
    **dict.fromkeys("/÷", operator.truediv),
}

_COMPARED = re.compile(
    rf"{_NOT_WITHIN}({_VALUE})\s+(?:is|was)\s+(?:(greater|larger|more|higher|bigger)|"
    rf"(?:less|smaller|fewer|lower))\s+than\s+({_VALUE}){_ENDS}",
    re.I,
)

_MONTHS: Final = {
    name: number
    for number in range(1, 13)
    for name in (month_name[number].casefold(), month_name[number][:3].casefold())
} | {"sept": 9}

_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))

_DATE = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTH})\.?,?\s+\d{{4}}"
    rf"|(?:{_MONTH})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}"
    r"|\d{4}-\d{2}-\d{2}|\d{4})"
)

_ONE_DATE = re.compile(_DATE, re.I)

_ORDERED = re.compile(
    rf"(?<![\w,.-])(?P<left>{_DATE})\)?\s+(?:is|was|comes|came|falls|fell)\s+"
    r"(?:(?P<before>before|earlier than|prior to)|after|later than)\s+"
    rf"(?P<right>{_DATE})(?![\w-]|[.,]\d)",
    re.I,
)

_WORD = r"[^\W\d_][\w'’.-]{0,30}"
_NAMED = re.compile(rf"(?P<name>{_WORD}(?:\s{_WORD}){{0,5}})\s\((?P<date>{_DATE})\)", re.I)

_CAME = (
    "died|was born|was released|came out|was founded|was established|was built|premiered|"
    "was published|was formed"
)

_CONCLUDED = re.compile(
    rf"\b(?:(?:{_CAME})\s+(?:earlier|later|first|last)|(?:is|was)\s+(?:older|younger))\b",
    re.I,
)


class DatePeriod(NamedTuple):
    """The first and the last day that a date may mean."""

    first: date
    last: date

    def precedes(self, other: DatePeriod) -> bool:
        """Say whether every day of this one is before every day of the other."""
        return self.last < other.first


def wrong_results(text: str) -> Iterator[str]:
    """Yield what a step computes or compares wrongly, each with what is right.

    Read are sums of two numbers, "12 is less than 9", "1930 is after 1946", and the conclusion
    about two names that have their dates in brackets.
    """
    yield from _sums(text)
    yield from _comparisons(text)
    yield from _dates(text)
    named = list(_NAMED.finditer(text))
    if len(named) == 2:
        yield from _conclusion(text[named[1].end() :], named)


def period(text: str) -> DatePeriod | None:
    """Return the days that a date means, such as "10 April 1930" or "1930"; None for others."""
    return _period(text) if _ONE_DATE.fullmatch(text.strip()) else None


def _sums(text: str) -> Iterator[str]:
    for match in _SUM.finditer(text):
        if text[: match.start()].rstrip()[-1:] in {*_OPERATORS, "(", "="} - {"x"}:
            continue  # the end of a longer sum
        left, right, result = (_number(match[at]) for at in (1, 3, 4))
        try:
            value = _OPERATORS[match[2]](left, right)
        except (DivisionByZero, InvalidOperation):
            continue
        # What was rounded to fewer digits is not wrong.
        if abs(value - result) >= Decimal(10) ** int(result.as_tuple().exponent):
            yield f"{match[0]}, where the result is {round(value, 6).normalize():f}"


def _comparisons(text: str) -> Iterator[str]:
    for match in _COMPARED.finditer(text):
        left, right = _number(match[1]), _number(match[3])
        if left == right or (left > right) is not bool(match[2]):
            yield f"“{match[0]}” is not so"


def _dates(text: str) -> Iterator[str]:
    for match in _ORDERED.finditer(text):
        left, right = _period(match["left"]), _period(match["right"])
        if not match["before"]:
            left, right = right, left
        if right.precedes(left) or (left == right and left.first == left.last):
            yield f"“{match[0]}” is not so"


def _conclusion(text: str, named: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the conclusion about two named dates if it is the wrong way round."""
    concluded = list(_CONCLUDED.finditer(text))
    negated = re.search(r"\bnot?\b|n['’]t\b", text, re.I)
    if len(concluded) != 1 or negated:
        return
    subject = re.findall(r"[\w'’.-]+", text[: concluded[0].start()])
    last_names = [person["name"].split()[-1] for person in named]
    about = [name in subject for name in last_names]
    left, right = (_period(event["date"]) for event in named)
    certain = left.precedes(right) or right.precedes(left)
    if not certain or sum(about) != 1 or last_names[0] == last_names[1]:
        return
    said_first = re.search("earlier|first|older", concluded[0][0], re.I) is not None
    first = 0 if left.precedes(right) else 1
    if about[first] is not said_first:
        yield f"“{concluded[0][0]}”, where {named[first]['date']} is before the other date"


def _number(text: str) -> Decimal:
    return Decimal(text.rstrip(",").replace(",", "").replace("−", "-"))


def _period(text: str) -> DatePeriod:
    """Read a date; where there is no such day it is the whole year."""
    year = max(int(re.findall(r"\d{4}", text)[0]), 1)
    iso = re.fullmatch(r"\d{4}-(\d{2})-(\d{2})", text)
    month = re.search(_MONTH, text, re.I)
    number = re.search(r"\b\d{1,2}(?!\d)", text)
    try:
        if iso:
            day = date(year, int(iso[1]), int(iso[2]))
        elif month and number:
            day = date(year, _MONTHS[month[0].casefold()], int(number[0]))
        else:
            return DatePeriod(date(year, 1, 1), date(year, 12, 31))
    except ValueError:
        return DatePeriod(date(year, 1, 1), date(year, 12, 31))
    return DatePeriod(day, day)

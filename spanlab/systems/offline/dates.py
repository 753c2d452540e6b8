"""Dates, however they are written: 31.03.1889, 1889-03-31, 31 de marzo de 1889, 1889年3月31日.

A date of the answer is compared with the date of the texts that agrees with it in most parts.
Parts that agree are supported, in any order, script or spelling; those that differ, contradicted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spanlab.systems.offline.lexicon import MonthNames
from spanlab.systems.offline.words import TokenRow, WordKind, fold

_SIGNS = {
    fold(sign): part
    for part, signs in {"year": "年년", "month": "月월", "day": "日号號일"}.items()
    for sign in signs
}
_ORDERS = (("day", "month", "year"), ("month", "day", "year"), ("year", "month", "day"))
_SEPARATORS = frozenset("./-–‑")
_AROUND = " \u00a0\u200e\u200f"  # spaces, and marks of direction around a separator
_RANGE = {"day": (1, 31), "month": (1, 12), "year": (100, 2999)}
_LONGEST_LINK = 3  # letters of a word such as "de", "of" or "th" between the parts
_MOST_LINKS = 2
_LONGEST_NUMBER = 4  # digits of a year
ONE_DATE = 2  # parts that agree, from which on it is one date and the rest is contradicted
_NAMED = (
    ("day", "month", "year"), ("month", "day", "year"), ("year", "month", "day"),
    ("day", "month"), ("month", "day"), ("month", "year"), ("year", "month"),
)  # fmt: skip


@dataclass(frozen=True)
class ParsedDate:
    """A date in a row of words.

    ``readings`` are the ways to read it (3/4/1889 has two): each maps year, month and day, as far
    as given, to the number. ``places`` has for each reading the word that says it. ``signs`` are
    the words that only name a part, such as 年, or end a number, by that word.
    """

    readings: tuple[Mapping[str, int], ...]
    places: tuple[Mapping[str, int], ...]
    signs: Mapping[int, int]

    @property
    def words(self) -> range:
        """The words from the date's first to its last."""
        positions = [*self.places[0].values(), *self.signs]
        return range(min(positions), max(positions) + 1)


class DateMatch(NamedTuple):
    """A date compared with another: pairs of words that agree, and pairs that differ.

    ``whole`` are pairs for the date as a whole, if it is one date: all words but those that differ,
    from the front and from the back, with those of the other, so that the words around
    either date count as neighbours of the same.
    """

    same: Mapping[int, int]
    other: Mapping[int, int]
    whole: tuple[tuple[int, int], ...] = ()


def dates(row: TokenRow, months: MonthNames) -> list[ParsedDate]:
    """Find the dates (two parts of one at least) in a row of words, in order, without overlap."""
    dates_read: list[ParsedDate] = []
    at = 0
    while at < len(row.forms):
        if row.kinds[at] != WordKind.NUMBER and _month(row, at, months) is None:
            at += 1
            continue
        date, end = _date(row, at, months)
        if date is not None:
            dates_read.append(date)
        at = end
    return dates_read


def match(date: ParsedDate, others: Sequence[ParsedDate]) -> DateMatch | None:
    """Compare a date with the one that agrees with it in most parts; None if none agrees in any."""
    best: tuple[int, int] | None = None
    chosen, beside = DateMatch({}, {}), date
    for other in others:
        for reading, places in zip(date.readings, date.places, strict=True):
            for its, its_places in zip(other.readings, other.places, strict=True):
                shared = [part for part in reading if part in its]
                same = {places[p]: its_places[p] for p in shared if reading[p] == its[p]}
                differ = {places[p]: its_places[p] for p in shared if reading[p] != its[p]}
                rank = (len(same), -len(differ))
                if same and (best is None or rank > best):
                    best, chosen, beside = rank, DateMatch(same, differ), other
    if best is None:
        return None
    signs = {sign: chosen.same[at] for sign, at in date.signs.items() if at in chosen.same}
    one_date = len(chosen.same) >= ONE_DATE or not chosen.other
    wrong = {*chosen.other, *(sign for sign, at in date.signs.items() if at in chosen.other)}
    whole = _whole(date, beside, wrong) if one_date else ()
    return DateMatch({**chosen.same, **signs}, chosen.other, whole)


def _whole(
    date: ParsedDate, other: ParsedDate, wrong: Collection[int]
) -> tuple[tuple[int, int], ...]:
    words, stands = date.words, other.words
    front = zip(words, stands, strict=False)
    back = zip(reversed(words), reversed(stands), strict=False)
    return tuple(pair for pair in (*front, *back) if pair[0] not in wrong)


def _date(row: TokenRow, at: int, months: MonthNames) -> tuple[ParsedDate | None, int]:
    """Return the date that begins at a number or month, and where to look for the next one."""
    if row.kinds[at] == WordKind.NUMBER:
        for reader in (_in_digits, _with_signs):
            date, end = reader(row, at)
            if date is not None:
                return date, end
    return _with_name(row, at, months)


def _in_digits(row: TokenRow, at: int) -> tuple[ParsedDate | None, int]:
    """Read 31.03.1889, 1889-03-31, 3/31/1889 or 31. 3. 1889."""
    gaps = [(row.gap(n) or "").strip(_AROUND) for n in (at, at + 1) if n + 1 < len(row.forms)]
    if len(gaps) < 2 or gaps[0] != gaps[1] or gaps[0] not in _SEPARATORS:
        return None, at + 1
    values = [_value(row, n) for n in (at, at + 1, at + 2)]
    readings: list[dict[str, int]] = []
    places: list[dict[str, int]] = []
    for order in _ORDERS:
        reading = {part: value or 0 for part, value in zip(order, values, strict=True)}
        if all(_fits(part, value) for part, value in reading.items()):
            readings.append(reading)
            places.append({part: at + n for n, part in enumerate(order)})
    if not readings:
        return None, at + 1
    return ParsedDate(tuple(readings), tuple(places), {}), at + 3


def _with_signs(row: TokenRow, at: int) -> tuple[ParsedDate | None, int]:
    """Read 1889年3月31日, or two neighbouring parts of it."""
    reading: dict[str, int] = {}
    places: dict[str, int] = {}
    signs: dict[int, int] = {}
    end = at
    rest = ["year", "month", "day"]
    while end + 1 < len(row.forms) and (end == at or row.gap(end - 1) is not None):
        part = _sign(row.forms[end + 1]) if row.gap(end) in ("", " ") else None
        value = _value(row, end)
        if part not in rest or value is None or not _fits(part, value):
            break
        rest = rest[rest.index(part) + 1 :]
        reading[part], places[part], signs[end + 1] = value, end, end
        end += 2
    if len(reading) < 2:
        return None, at + 1
    return ParsedDate((reading,), (places,), signs), end


def _sign(form: str) -> str | None:
    return next((part for sign, part in _SIGNS.items() if form.startswith(sign)), None)


def _with_name(row: TokenRow, at: int, months: MonthNames) -> tuple[ParsedDate | None, int]:
    """Read 31 March 1889, March 31st, 1889, 31 de marzo de 1889 and the like."""
    parts = list(_parts(row, at, months))
    for order in _NAMED:
        if tuple(part for part, _, _ in parts[: len(order)]) == order:
            used = parts[: len(order)]
            reading = {part: value for part, value, _ in used}
            places = {part: place for part, _, place in used}
            signs = {place + 1: place for place in places.values() if _has_ending(row, place)}
            return ParsedDate((reading,), (places,), signs), max(*places.values(), *signs) + 1
    return None, at + 1


def _has_ending(row: TokenRow, place: int) -> bool:
    """Return whether letters follow a number without a space: 31st, 1er, 31n."""
    number = row.kinds[place] == WordKind.NUMBER
    if not number or place + 1 >= len(row.forms) or row.gap(place) != "":
        return False
    return row.kinds[place + 1] == WordKind.LETTERS and len(row.forms[place + 1]) <= _LONGEST_LINK


def _parts(row: TokenRow, at: int, months: MonthNames) -> Iterator[tuple[str, int, int]]:
    """Yield part, number and place of up to three neighbouring words that can be of a date."""
    links = parts = 0
    for place in range(at, len(row.forms)):
        gap = row.gap(place - 1) if place > at else ""
        if gap is None or "\n" in gap or len(gap.strip()) > 1:
            return
        part, value = _part(row, place, months)
        if part:
            yield part, value, place
            parts, links = parts + 1, 0
        else:
            links += 1
            short = row.kinds[place] == WordKind.LETTERS and len(row.forms[place]) <= _LONGEST_LINK
            if not short or links > _MOST_LINKS:
                return
        if parts == len(_RANGE):
            return


def _part(row: TokenRow, place: int, months: MonthNames) -> tuple[str, int]:
    """Return which part of a date a word can be, and its number; an empty name if none."""
    value = _value(row, place)
    if value is not None:
        return next((part for part in ("day", "year") if _fits(part, value)), ""), value
    month = _month(row, place, months)
    return ("", 0) if month is None else ("month", month)


def _month(row: TokenRow, at: int, months: MonthNames) -> int | None:
    return months.number(row.forms[at]) if row.kinds[at] == WordKind.LETTERS else None


def _value(row: TokenRow, at: int) -> int | None:
    if row.kinds[at] != WordKind.NUMBER:
        return None
    digits = row.forms[at][1:]
    return int(digits) if digits.isdecimal() and len(digits) <= _LONGEST_NUMBER else None


def _fits(part: str, value: int) -> bool:
    low, high = _RANGE[part]
    return low <= value <= high

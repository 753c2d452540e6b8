"""When a passage was published, from the dates that pages and search services state."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

_ISO = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?![\d/.-])")
_DAY_FIRST = re.compile(
    r"(?P<day>\d{1,2})(?:st|nd|rd|th)? (?P<month>[A-Z][a-z]{2,8})\.?,? (?P<year>\d{4})"
)
_MONTH_FIRST = re.compile(
    r"(?P<month>[A-Z][a-z]{2,8})\.? (?:(?P<day>\d{1,2})(?:st|nd|rd|th)?,? )?(?P<year>\d{4})"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_AGO = re.compile(r"(\d{1,4}|an?) (minute|hour|day|week|month|year)s? ago", re.IGNORECASE)
_DAYS = {"minute": 0, "hour": 0, "day": 1, "week": 7, "month": 28, "year": 365}  # at least


def stated(text: str, today: date | None = None) -> str:
    """Return a date as it is kept: an age as the latest day it may mean, all else as it is.

    Args:
        text: such as ``2024-05-01``, ``3 days ago`` or ``Yesterday``.
        today: the day that an age counts from; None for today in UTC.
    """
    today = today or datetime.now(UTC).date()
    if text.strip().lower() == "yesterday":
        return (today - timedelta(days=1)).isoformat()
    ago = _AGO.fullmatch(text.strip())
    if ago is None:
        return text
    number = int(ago[1]) if ago[1].isdecimal() else 1
    return (today - timedelta(days=number * _DAYS[ago[2].lower()])).isoformat()


def latest_day(text: str) -> date | None:
    """Return the last day that a stated date may mean.

    Args:
        text: an ISO date or time (``2024-05-01``, ``2024-05``, ``2024``), or an English date with
            the month in letters (``1 May 2024``, ``Wed, 01 May 2024 10:00 GMT``, ``May 2024``).

    Returns:
        The day, of a month or year its last one; None for any other text, such as ``3 days ago``
        or ``05/01/2024``, which means another day in other countries.
    """
    text = text.strip()
    iso = _ISO.match(text)
    if iso:
        year, month, day = (int(part) if part else None for part in iso.groups())
        return _last(year, month, day)
    written = _DAY_FIRST.search(text) or _MONTH_FIRST.search(text)
    if written is None or written["month"][:3] not in _MONTHS:
        return None
    day = int(written["day"]) if written["day"] else None
    return _last(int(written["year"]), 1 + _MONTHS.index(written["month"][:3]), day)


def _last(year: int | None, month: int | None, day: int | None) -> date | None:
    try:
        if year is None or month is None:
            return None if year is None else date(year, 12, 31)
        return date(year, month, day or monthrange(year, month)[1])
    except ValueError:
        return None  # no such day

"""When a passage was published, as search services state it, or a web page of itself.

Only what a page says of itself counts: its metadata, JSON-LD, or a ``time`` element. A day that
merely stands in its text, in an address or a comment to it may be of anything, and so may the day
of its last change: pages are changed for ever.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

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


_FIRST: Final = date(1990, 1, 1)  # before there were web pages: what a field holds by default


_KEYS: Final = ("property", "name", "itemprop", "http-equiv", "pubdate")


_SEPARATORS: Final = re.compile(r"[\W_]+")


# Names of metadata for a day of publication, in lower case and without separators.
_PUBLISHED: Final = frozenset(
    "articledateoriginal articlepostdate articlepublicationdate articlepublished "  # noqa: SIM905
    "articlepublisheddate articlepublishedtime bookreleasedate citationdate citationonlinedate "
    "citationpublicationdate date datecreated dateposted datepublished dccreated dcdate "
    "dcdatecreated dcdateissued dctermscreated dctermsdate dctermsissued displaydate "
    "ogarticlepublishedtime ogpublishdate ogpublishedtime parselypubdate pubdate "
    "publicationdate publishdate publisheddate publishedtime publishtime releasedate "
    "rnewsdatepublished sailthrudate videoreleasedate".split()
)


_MARKS: Final = frozenset(("published", "entry-date", "entry-time"))  # classes of time elements


_LINKED: Final = tuple(
    re.compile(rf'"{name}"\s*:\s*"([^"]{{4,40}})"')
    for name in ("datePublished", "dateCreated", "uploadDate")
)


_YEAR_FIRST: Final = re.compile(r"(\d{4})[/.]?(\d{2})[/.]?(\d{2})(?!\d)")


_PART: Final = re.compile(r"\d{4}(-\d{2})?")  # of a date: a year, or a month of it


class PageDate:
    """What a page has stated so far; metadata outweighs JSON-LD, and that a ``time`` element.

    Of ``time`` elements one that is marked as the day of publication outweighs the first one.
    """

    def __init__(self) -> None:
        self._metadata: str | None = None
        self._linked: str | None = None
        self._time: str | None = None
        self._marked_time: str | None = None

    @property
    def day(self) -> str | None:
        """The day (ISO), or the month or year if no more is stated; None if nothing is."""
        return self._metadata or self._linked or self._marked_time or self._time

    def element(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take the attributes of an element, by names in lower case."""
        keys = {_SEPARATORS.sub("", attributes.get(key, "").lower()) for key in _KEYS}
        written = attributes.get("datetime") or attributes.get("content", "")
        if name == "meta":
            if self._metadata is None and keys & _PUBLISHED:
                self._metadata = stated_day(written)
        elif keys & {"datepublished", "pubdate"} or _MARKS & set(
            attributes.get("class", "").lower().split()
        ):
            self._marked_time = self._marked_time or stated_day(written)
        elif name == "time" and self._time is None:
            self._time = stated_day(written)

    def linked_data(self, text: str) -> None:
        """Take the text of a script with JSON-LD."""
        for pattern in _LINKED:
            match = pattern.search(text)
            if self._linked is None and match is not None:
                self._linked = stated_day(match[1])


def stated_day(text: str, today: date | None = None) -> str | None:
    """Read what is stated as a day of publication.

    Args:
        text: an ISO date or time, one with the month in letters, or with the year first.
        today: the last day that is possible but one; None for today in UTC.

    Returns:
        The day (ISO); the month or year as it stands there, if there is no more; None for what is
        no date, or not one of a web page.
    """
    text = _YEAR_FIRST.sub(r"\1-\2-\3", text.strip(), count=1)
    day = latest_day(text)
    last = (today or datetime.now(UTC).date()) + timedelta(days=1)
    if _PART.fullmatch(text):
        return text if day is not None and _FIRST.year <= day.year <= last.year else None
    return day.isoformat() if day is not None and _FIRST <= day <= last else None

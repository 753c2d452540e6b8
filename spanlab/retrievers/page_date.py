"""The day on which a web page states that it was published.

Only what a page says of itself counts: its metadata, JSON-LD, or a ``time`` element. A day that
merely stands in its text, in an address or a comment to it may be of anything, and so may the day
of its last change: pages are changed for ever.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

from spanlab.retrievers.dates import latest_day

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
            found = pattern.search(text)
            if self._linked is None and found is not None:
                self._linked = stated_day(found[1])


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

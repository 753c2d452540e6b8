"""Search results in JSON, of any service, as passages; and the day a page was published.

Of a web page's date only what the page says of itself counts: its metadata, JSON-LD, or a ``time``
element. A day that merely stands in its text, in an address or a comment to it may be of anything,
and so may the day of its last change: pages are changed for ever.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from spanlab.base.errors import InputError
from spanlab.base.fields import FrozenModel, storable
from spanlab.schema import Passage

# Where the usual services keep their results: Tavily and many others `results`, you.com `hits`
# (or `results.web`), Brave `web.results`, Serper `organic`, Google `items`, Bing `webPages.value`.
_RESULTS = ("results.web", "results", "hits", "web.results", "organic", "webPages.value", "items")
_TEXT = ("content", "snippets", "snippet", "description", "text", "body")
_TITLE = ("title", "name")
_URL = ("url", "link", "href")
_DATE = ("published_date", "page_age", "date", "last_updated", "published", "age")


class ResultShape(FrozenModel):
    """Where in the JSON the results and their parts are: dotted paths such as ``web.results``.

    Every path that is left out is looked for where the usual services have it. At ``results`` there
    is a list, or an only result.
    """

    results: str | None = None
    text: str | None = None
    title: str | None = None
    url: str | None = None
    date: str | None = None


def passages_of(
    answer: JsonValue,
    shape: ResultShape,
    *,
    markup: bool = False,
    link: str = "",
    sign: str | None = None,
) -> tuple[Passage, ...]:
    """Return the results in an answer as passages, best first as they came.

    A stated age, such as "3 days ago", becomes the day it means.

    Args:
        answer: the decoded JSON.
        shape: where to look.
        markup: whether texts and titles are HTML.
        link: the address of a page by its ``{title}``, for results without one.
        sign: of a service whose answers are known, the path that an answer has also where it
            leaves out the list, because nothing was found; None for any other service.

    Returns:
        A passage for every result that has a text; none for an empty list of results.

    Raises:
        InputError: there is no list of results, or results but no text in any of them.
    """
    answer = storable(answer)
    if (
        sign
        and shape.results
        and _at(answer, shape.results) is None
        and _at(answer, sign) is not None
    ):
        return ()
    results = _results(answer, shape)
    passages = tuple(_passages(results, shape, markup, link))
    if results and not passages and sign is None:
        raise InputError(
            "no search result has a text",
            field=shape.text or " or ".join(_TEXT),
            found=results[0],
            expected="the path of the text in each result",
        )
    return passages


def _results(answer: JsonValue, shape: ResultShape) -> Sequence[JsonValue]:
    for path in (shape.results,) if shape.results else _RESULTS:
        value = _at(answer, path)
        if isinstance(value, list):
            return value
        if isinstance(value, dict) and shape.results:
            return [value]
    if isinstance(answer, list) and not shape.results:
        return answer
    raise InputError(
        "the answer has no list of search results",
        field=shape.results or " or ".join(_RESULTS),
        found=sorted(answer) if isinstance(answer, dict) else answer,
        expected="the path of the list of results",
    )


def _passages(
    results: Sequence[JsonValue], shape: ResultShape, markup: bool, link: str
) -> Iterator[Passage]:
    for result in results:
        text = _text(result, (shape.text,) if shape.text else _TEXT)
        title = _text(result, (shape.title,) if shape.title else _TITLE)
        if markup:
            text, title = _plain(text), _plain(title)
        if text:
            url = _text(result, (shape.url,) if shape.url else _URL)
            if url is None and link and title:
                url = link.replace("{title}", quote(title.replace(" ", "_"), "/:()',"))
            date = _text(result, (shape.date,) if shape.date else _DATE)
            yield Passage(text=text, title=title, url=url, date=date and without_age(date))


def _plain(text: str | None) -> str | None:
    from spanlab.search.html import read_html

    return text and read_html(text.encode(), "utf-8").text


def _text(result: JsonValue, paths: Sequence[str]) -> str | None:
    """Return the first text there is; several snippets of one page are paragraphs of one text."""
    for path in paths:
        value = _at(result, path)
        parts = value if isinstance(value, list) else [value]
        texts = [part.strip() for part in parts if isinstance(part, str) and part.strip()]
        if texts:
            return "\n\n".join(texts)
    return None


def _at(value: JsonValue, path: str) -> JsonValue:
    for key in path.split("."):
        if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value


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


def without_age(text: str, today: date | None = None) -> str:
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
        return _last_day(year, month, day)
    match = _DAY_FIRST.search(text) or _MONTH_FIRST.search(text)
    if match is None or match["month"][:3] not in _MONTHS:
        return None
    day = int(match["day"]) if match["day"] else None
    return _last_day(int(match["year"]), 1 + _MONTHS.index(match["month"][:3]), day)


def _last_day(year: int | None, month: int | None, day: int | None) -> date | None:
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
    "articledateoriginal articlepostdate articlepublicationdate articlepublished "  # noqa: SIM905 - a list of words
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
    """The day of publication that a page states; metadata outweighs JSON-LD, and that ``time``.

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

    def read_element(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note the day that an element states; its attributes by names in lower case."""
        keys = {_SEPARATORS.sub("", attributes.get(key, "").lower()) for key in _KEYS}
        date_text = attributes.get("datetime") or attributes.get("content", "")
        if name == "meta":
            if self._metadata is None and keys & _PUBLISHED:
                self._metadata = stated_day(date_text)
        elif keys & {"datepublished", "pubdate"} or _MARKS & set(
            attributes.get("class", "").lower().split()
        ):
            self._marked_time = self._marked_time or stated_day(date_text)
        elif name == "time" and self._time is None:
            self._time = stated_day(date_text)

    def read_linked_data(self, text: str) -> None:
        """Note the day that a script with JSON-LD states."""
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
    last_day = (today or datetime.now(UTC).date()) + timedelta(days=1)
    if _PART.fullmatch(text):
        return text if day is not None and _FIRST.year <= day.year <= last_day.year else None
    return day.isoformat() if day is not None and _FIRST <= day <= last_day else None

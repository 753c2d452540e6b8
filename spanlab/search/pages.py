"""Web pages as text, fetched politely and only from public addresses."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from spanlab.base.errors import PageError, RefusedPageError, UnparsableAnswerError
from spanlab.base.fields import FrozenModel, storable
from spanlab.base.inbound import collected, foreign
from spanlab.base.settings import Settings
from spanlab.models.cache import AnswerCache, answer_cache
from spanlab.search.addresses import (
    AGENT,
    certificates,
    check_url,
    public_address,
)
from spanlab.search.page_text import read_apart

if TYPE_CHECKING:
    import httpcore

_SECONDS: Final = 10.0  # for a page, and for each redirect on the way to it
_PAUSE: Final = 1.0  # seconds between two pages of one host
_BYTES: Final = 5 * 2**20  # of a page, unpacked
_RULES: Final = 500 * 2**10  # bytes of a robots.txt, as RFC 9309 has it
_REDIRECTS: Final = 5
_SITES: Final = 1_000  # whose robots.txt is kept in memory
_FORGIVEN: Final = 600.0  # seconds after which a page that could not be fetched is tried again
_HEADERS: Final = (
    (b"User-Agent", AGENT.encode()),
    (b"Accept", b"text/html, application/pdf, text/plain"),
    (b"Accept-Encoding", b"gzip"),
)
_MOVED: Final = frozenset((301, 302, 303, 307, 308))


class WebPage(FrozenModel):
    """A page's text; ``url`` is where it was found in the end, ``fetched`` the day (ISO).

    ``date`` is the day that the page says it was published on; None if it does not say.
    """

    text: str
    url: str
    title: str | None = None
    date: str | None = None
    fetched: str


class _FailedFetch(FrozenModel):
    """Why a page could not be fetched, and when (Unix seconds)."""

    reason: str
    at: float


class _UnreachableError(PageError):
    """A site gave no answer, or an error."""


class _PageReply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    data: bytes


class PageReader:
    """Reads web pages: one at a time per host, with a pause, as far as robots.txt allows.

    Args:
        cache: pages read so far; None reads anew every time.
        allowed: hosts with ports that need not be public.
        pause: seconds between two pages of one host.
        seconds: that a page may take, and each redirect on the way to it.

    """

    def __init__(
        self,
        cache: AnswerCache | None = None,
        *,
        allowed: frozenset[str] | None = None,
        pause: float,
        seconds: float = _SECONDS,
    ) -> None:
        self._cache, self._pause, self._seconds = cache, pause, seconds
        self._allowed = Settings.read().pages_allowed_hosts if allowed is None else allowed
        # Rules, or why they could not be read, and since when.
        self._robots: dict[str, tuple[RobotFileParser | PageError, float]] = {}
        self._hosts: WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[str, asyncio.Lock]]
        self._hosts = WeakKeyDictionary()

    async def read(self, url: str) -> WebPage:
        """Return a page as text, from the cache if it was read before.

        Raises:
            PageError: the address is refused, the page cannot be fetched, is larger than 5 MiB
                or is no text. A site that gave no answer is not asked for that page again within
                ten minutes.
        """
        check_url(url)
        key = "dated page " + hashlib.sha256(url.encode()).hexdigest()
        if self._cache is None:
            return await self._fetch(url)
        cache = self._cache

        async def fetch() -> WebPage:
            stored = await cache.get(key)
            with suppress(ValidationError):
                return WebPage.model_validate(stored)
            with suppress(ValidationError):
                failure = _FailedFetch.model_validate(stored)
                if abs(time.time() - failure.at) < _FORGIVEN:  # later: the clock was set back
                    raise PageError(failure.reason)
            try:
                fetched_page = await self._fetch(url)
            except _UnreachableError as error:
                failure = _FailedFetch(reason=str(error), at=time.time())
                await cache.put(key, failure.model_dump(mode="json"))
                raise
            await cache.put(key, fetched_page.model_dump(mode="json"))
            return fetched_page

        web_page: WebPage = await cache.single_flight.join(key, fetch)
        return web_page

    async def _fetch(self, url: str) -> WebPage:
        with foreign(f"{_host(url)} could not be read", PageError):
            return await self._read(url)

    async def _read(self, url: str) -> WebPage:
        answer, url = await self._follow(url)
        kind = answer.headers.get("content-type", "")
        try:
            page_text = await read_apart(answer.data, kind)
        except PageError as error:
            raise PageError(f"{_host(url)} sent something unreadable: {error}") from None
        text, title = storable(page_text.text.replace("\0", "")), storable(page_text.title)
        if not text.strip():
            raise PageError(f"{_host(url)} sent a page without text")
        day = datetime.now(UTC).date().isoformat()
        return WebPage(text=text, url=url, title=title, date=page_text.date, fetched=day)

    async def _follow(self, url: str) -> tuple[_PageReply, str]:
        for _ in range(_REDIRECTS + 1):
            parts = check_url(url)
            origin = f"{parts.scheme}://{parts.netloc}"
            async with self._wait_for_turn(parts.netloc):
                if not (await self._rules(origin)).can_fetch(AGENT, url):
                    raise RefusedPageError(
                        f"{_host(url)} does not want this page to be read by programs"
                    )
                answer = await self._get(url)
            place = answer.headers.get("location")
            if answer.status not in _MOVED or not place:
                break
            url = _join_url(url, place)
        else:
            raise PageError(f"{_host(url)} redirects more than {_REDIRECTS} times")
        if not 200 <= answer.status < 300:
            raise _UnreachableError(f"{_host(url)} answered with status {answer.status}")
        return answer, url

    async def _rules(self, origin: str) -> RobotFileParser:
        """Read a site's robots.txt once: none means all is allowed, an error that nothing is."""
        known_rules, since = self._robots.get(origin, (None, 0.0))
        if isinstance(known_rules, RobotFileParser):
            return known_rules
        if known_rules is not None and time.monotonic() - since < _FORGIVEN:
            raise type(known_rules)(str(known_rules))
        if len(self._robots) >= _SITES:
            self._robots.clear()
        try:
            async with self._in_time(origin):
                rules = await self._read_rules(origin)
        except PageError as error:
            self._robots[origin] = error, time.monotonic()
            raise
        self._robots[origin] = rules, 0.0
        return rules

    async def _read_rules(self, origin: str) -> RobotFileParser:
        rules, place = RobotFileParser(), f"{origin}/robots.txt"
        for _ in range(_REDIRECTS + 1):
            answer = await self._get(place)
            moved = answer.headers.get("location")
            if answer.status not in _MOVED or not moved:
                break
            place = _join_url(place, moved)
        if answer.status >= 500:
            raise _UnreachableError(f"{_host(origin)} answered with status {answer.status}")
        text = answer.data[:_RULES].decode("utf-8", "replace") if answer.status < 300 else ""
        rules.parse(text.splitlines())
        return rules

    @asynccontextmanager
    async def _wait_for_turn(self, host: str) -> AsyncIterator[None]:
        """Wait until nobody else reads a page of this host, and a pause is over."""
        loop = asyncio.get_running_loop()
        locks = self._hosts.setdefault(loop, defaultdict(asyncio.Lock))
        await locks[host].acquire()
        try:
            yield
        finally:
            loop.call_later(self._pause, locks[host].release)

    async def _get(self, url: str) -> _PageReply:
        import httpcore

        try:
            async with (
                self._in_time(url),
                httpcore.AsyncConnectionPool(
                    ssl_context=certificates(), network_backend=_backend(self._allowed)
                ) as pool,
                pool.stream("GET", url, headers=_HEADERS) as response,
            ):
                headers = {
                    name.decode("latin-1").lower(): value.decode("latin-1")
                    for name, value in response.headers
                }
                pieces, packed = response.aiter_stream(), headers.get("content-encoding")
                body = await collected(pieces, _BYTES, _host(url), packed, advice="")
                return _PageReply(response.status, headers, body)
        except UnparsableAnswerError as error:
            raise RefusedPageError(str(error)) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, ValueError) as error:
            raise _UnreachableError(
                f"{_host(url)} could not be read: {type(error).__name__}"
            ) from None

    @asynccontextmanager
    async def _in_time(self, url: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except TimeoutError:
            raise _UnreachableError(
                f"{_host(url)} did not send the page in {self._seconds:g} s"
            ) from None


@cache
def web_pages(settings: Settings) -> PageReader:
    """Return the reader of web pages that all detectors of this process share.

    Raises:
        StoreError: the cache cannot be used.
    """
    return PageReader(answer_cache(settings, "retrieval"), pause=_PAUSE)


def _join_url(url: str, place: str) -> str:
    """Return where a redirect leads; raises PageError if that is no address."""
    try:
        place = urljoin(url, place)
    except ValueError:
        raise PageError(
            f"{_host(url)} redirects to {place[:200]!r}, which is not a web address"
        ) from None
    return check_url(place).geturl()


def _backend(allowed: frozenset[str]) -> httpcore.AsyncNetworkBackend:
    """Return what connects to public addresses alone, and to the very address it checked."""
    import httpcore

    class CheckedBackend(httpcore.AsyncNetworkBackend):
        _inner = httpcore.AnyIOBackend()

        async def connect_tcp(
            self, host: str, port: int, *args: Any, **kwargs: Any
        ) -> httpcore.AsyncNetworkStream:
            address = await public_address(host, port, allowed)
            return await self._inner.connect_tcp(address, port, *args, **kwargs)

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

    return CheckedBackend()


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2][:200]

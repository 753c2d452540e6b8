"""Asking a search API whose results are JSON; each search is paid for once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from spanlab.base.errors import ConfigurationError, ModelError, UnavailableError
from spanlab.base.inbound import collected, reply_limit
from spanlab.base.redaction import hidden, redact
from spanlab.models.cache import AnswerCache
from spanlab.models.choice import ModelOrigins
from spanlab.models.failures import (
    ServerReport,
    failure_of,
    no_answer_in_time,
    no_connection,
    quoted,
    translate,
    words_of,
)
from spanlab.models.meter import Meter
from spanlab.schema import Passage, storable_json
from spanlab.schema.usage import Usage
from spanlab.search.addresses import AGENT, certificates
from spanlab.search.base import PER_SEARCH, RetrievedPassages, SearchQuery
from spanlab.search.endpoint import SearchEndpoint
from spanlab.search.provider import ServiceRequest
from spanlab.search.results import passages_of

if TYPE_CHECKING:
    import httpx


_T = TypeVar("_T")
_FIRST_PAUSE = 0.5  # seconds; doubled after each attempt
_LONGEST_PAUSE = 30.0
_LONGEST_WAIT = 90.0  # an endpoint that asks for more is given up at once


class _StatusError(Exception):
    """The API answered, with an error."""

    def __init__(self, reply: ServerReport) -> None:
        super().__init__(reply.message)
        self.reply = reply


class SearchApi:
    """Asks a search API.

    Args:
        endpoint: where and how.
        cache: what was fetched so far; None asks anew every time.
        k: how many results are kept, at least 1.
        meter: counts the searches and stops them at its budget; None counts for nobody.
        name: of a known service; else the address is the name.

    """

    def __init__(
        self,
        endpoint: SearchEndpoint,
        cache: AnswerCache | None,
        k: int = PER_SEARCH,
        meter: Meter | None = None,
        name: str = "",
    ) -> None:
        self._endpoint = endpoint
        self._fetched = RetrievalCache(cache)
        self._k = k
        self._meter = meter or Meter()
        self._called = f"search:{name or endpoint.host}"
        own = f"@{endpoint.host}" if name and endpoint.moved else ""
        self.name = self._called + own + (f"/{k}" if k != PER_SEARCH else "")

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        """Ask the API for a query, on one line."""
        endpoint, k = self._endpoint, query.k or self._k
        query = replace(query, text=endpoint.cut(query.text), k=endpoint.number_to_ask(k))
        request = endpoint.request(query)
        shape = endpoint.shape.model_dump(mode="json")
        place: list[JsonValue] = ["search", request.url, request.body, shape]

        async def fetch() -> tuple[Passage, ...]:
            async with self._count_search():
                ask = partial(self._ask, request)
                return await retry(ask, self._judge, endpoint.retries, before=self._wait_for_turn)

        passages = await self._fetched.passages(place, fetch)
        return RetrievedPassages((query.text,), tuple(filter(query.admits, passages))[:k])

    async def _wait_for_turn(self) -> None:
        if self._endpoint.rate is not None:
            await pace_of(self._endpoint.host, self._endpoint.rate).wait_for_turn()

    @asynccontextmanager
    async def _count_search(self) -> AsyncIterator[None]:
        """Count a search: within the budget before it starts, and with its price afterwards."""
        await self._meter.admit("searches")
        used = Usage(failed=1)
        try:
            yield
            used = Usage(searches=1, cost=self._endpoint.price)
        finally:
            self._meter.finish(self._called, used, "searches")

    async def _ask(self, request: ServiceRequest) -> tuple[Passage, ...]:
        import httpx

        endpoint = self._endpoint
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": AGENT,
        }
        if endpoint.key:
            bearer = "Bearer " if endpoint.header.lower() == "authorization" else ""
            headers[endpoint.header] = bearer + endpoint.key
        async with (
            asyncio.timeout(endpoint.timeout),
            httpx.AsyncClient(
                timeout=httpx.Timeout(None), headers=headers, verify=certificates()
            ) as client,
        ):
            answer = await self._answer(client, request.url, request.body)
            service = endpoint.provider
            if service is None:
                return passages_of(answer, endpoint.shape)
            if service.then is not None and (place := service.then(answer, request.url)):
                answer = await self._answer(client, place, None)
        shape, markup = service.shape, service.markup
        return passages_of(answer, shape, markup=markup, link=request.link, sign=service.sign)

    async def _answer(
        self, client: httpx.AsyncClient, url: str, body: dict[str, JsonValue] | None
    ) -> JsonValue:
        endpoint = self._endpoint
        request = client.build_request("GET" if body is None else "POST", url, json=body)
        response = await client.send(request, stream=True)
        try:
            packed = response.headers.get("content-encoding")
            data = await collected(response.aiter_raw(), reply_limit(), endpoint.host, packed)
            if not response.is_success:
                reply = ServerReport.read(response.status_code, response.headers, data)
                raise _StatusError(reply)
        finally:
            await response.aclose()
        text = hidden(data.decode("utf-8", errors="replace"), [endpoint.key])
        read = storable_json if endpoint.provider is None else endpoint.provider.read
        try:
            answer: JsonValue = read(text)
        except ValueError:
            raise ModelError(f"{endpoint.host} sent no JSON{quoted(words_of(text))}") from None
        return answer

    def _judge(self, error: Exception) -> FailedAttempt:
        import httpx

        host = self._endpoint.host
        address, key = self._endpoint.variables
        service = self._endpoint.provider
        if isinstance(error, _StatusError):
            reply = error.reply
            failed = failure_of(reply, host=host, model="the search", key_name=key)
            if reply.status == 404:
                failed = ConfigurationError(f"{host} has nothing at this address; check {address}")
            elif reply.status == 403 and service is not None and service.forbidden:
                failed = ConfigurationError(f"{host} refuses the search: {service.forbidden}")
            return FailedAttempt(failed, isinstance(failed, UnavailableError), reply.retry_after)
        if isinstance(error, TimeoutError):
            return FailedAttempt(no_answer_in_time(host, self._endpoint.timeout), again=True)
        if isinstance(error, httpx.TransportError):
            unreachable = no_connection(host, error, ModelOrigins(address=address))
            return FailedAttempt(UnavailableError(str(unreachable)), again=True)
        failure = translate(error)
        words = redact(f"{host}: {failure}")
        return FailedAttempt(
            failure if isinstance(failure, ModelError) else ModelError(words), again=False
        )


@dataclass(frozen=True)
class FailedAttempt:
    """Why an attempt failed, whether another may help, and the seconds the endpoint asks for."""

    error: ModelError
    again: bool
    after: float | None = None


async def retry(
    attempt: Callable[[], Awaitable[_T]],
    judge: Callable[[Exception], FailedAttempt],
    retries: int,
    before: Callable[[], Awaitable[None]] | None = None,
) -> _T:
    """Make an attempt, and up to ``retries`` more where that may help.

    Args:
        attempt: makes one.
        judge: says what an exception of an attempt means.
        retries: how many may follow the first, at least 0.
        before: awaited before each attempt; what it raises ends them.

    Returns:
        What the first attempt that succeeds returns.

    Raises:
        ModelError: the last one's setback; never the exception itself, which may quote a key.
    """
    done = 0
    while True:
        if before is not None:
            await before()
        try:
            return await attempt()
        except Exception as error:  # noqa: BLE001 - judged, and raised as one of ours
            setback = judge(error)
        pause = pause_after(setback, done, retries)
        if pause is None:
            raise setback.error
        await asyncio.sleep(pause)
        done += 1


def pause_after(setback: FailedAttempt, done: int, retries: int) -> float | None:
    """Return the seconds to wait before another attempt, or None to give up.

    Args:
        setback: how the last attempt ended.
        done: how many retries there were before it.
        retries: how many there may be.
    """
    if not setback.again or done >= retries or (setback.after or 0.0) > _LONGEST_WAIT:
        return None
    if setback.after is not None:
        return setback.after * random.uniform(1.0, 1.1)
    pause: float = min(_FIRST_PAUSE * 2**done, _LONGEST_PAUSE)
    return pause * random.uniform(0.5, 1.0)


_PASSAGES = TypeAdapter(tuple[Passage, ...])


class RetrievalCache:
    """Keeps the passages that searches found.

    Args:
        cache: where they are kept; without one, nothing is.
    """

    def __init__(self, cache: AnswerCache | None) -> None:
        self._cache = cache

    async def passages(
        self, key: Sequence[JsonValue], fetch: Callable[[], Awaitable[tuple[Passage, ...]]]
    ) -> tuple[Passage, ...]:
        """Return the passages kept under ``key``, or fetch and keep them, also if there are none.

        Whoever asks the same at the same time waits for the one answer.

        Args:
            key: all that the answer depends on, without any API key.
            fetch: asks; if it raises, nothing is kept.
        """
        if self._cache is None:
            return await fetch()
        cache = self._cache
        place = "passages " + hashlib.sha256(json.dumps(key).encode()).hexdigest()

        async def read_or_fetch() -> tuple[Passage, ...]:
            known_passages = _read(await cache.get(place))
            if known_passages is not None:
                return known_passages
            passages = await fetch()
            await cache.put(place, {"passages": _PASSAGES.dump_python(passages, mode="json")})
            return passages

        passages: tuple[Passage, ...] = await cache.single_flight.join(place, read_or_fetch)
        return passages


def _read(answer: dict[str, object] | None) -> tuple[Passage, ...] | None:
    try:
        return None if answer is None else _PASSAGES.validate_python(answer.get("passages"))
    except ValidationError:
        return None  # not what is written here: fetched anew and overwritten


@dataclass
class SearchPace:
    """Spaces the searches of this process evenly; any number of threads and loops may share it.

    Libraries for this (aiolimiter, limits) hold for one event loop or want a store beside it.
    """

    seconds: float  # from one search to the next
    _next: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    async def wait_for_turn(self) -> None:
        """Wait until the next search may begin."""
        with self._lock:
            now = time.monotonic()
            begins = max(self._next, now)
            self._next = begins + self.seconds
        await asyncio.sleep(begins - now)


@cache
def pace_of(host: str, rate: float) -> SearchPace:
    """Return the pace of a service, the same for all that ask it; ``rate`` is searches a minute."""
    return SearchPace(60.0 / rate)

"""HTTP to one endpoint: openai's client on aiohttp, with what openai leaves open.

Every attempt of openai's, retries included, goes through ``BoundedClient.send``: it waits for its
turn, has one limit of time and one of size, leaves out what the endpoint refuses, hides keys, and
tells openai whether another attempt may help. As openai takes longer to write a request than all
the rest of a call does, only the first call and those that fail go through it: see ``Api.post``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import httpx  # noqa: F401 - a call fails while another thread imports what openai looks into
import httpx2
import openai

from spanlab.base.errors import UnavailableError
from spanlab.base.inbound import collected, reply_limit
from spanlab.base.redaction import hidden
from spanlab.models.choice import EndpointAddress, ModelChoice
from spanlab.models.failures import (
    ServerReport,
    failure_of,
    no_completion,
    read_report,
)
from spanlab.models.meter import Meter
from spanlab.models.refusals import dialect_of
from spanlab.schema import storable_json


class Api(NamedTuple):
    """openai's client of one endpoint, and the HTTP client that it sends with."""

    client: openai.AsyncOpenAI
    http: BoundedClient

    async def post(self, url: str, body: bytes) -> httpx2.Response:
        """Post a body: the first attempt as openai wrote an earlier one, all others by openai.

        Raises:
            Exception: one of openai's, or of ``BoundedClient.send``.
        """
        reply = await self.http.begin(body)
        if reply is not None:
            return reply
        try:
            return await self.client.post(url, cast_to=httpx2.Response, content=body)
        finally:
            self.http.written.set()
            _MADE.set(None)


async def open_api(
    choice: ModelChoice,
    meter: Meter,
    *,
    key: str,
    headers: dict[str, str],
) -> AsyncGenerator[Api]:
    """Yield openai's client for an endpoint; asyncio closes it together with the event loop."""
    address = EndpointAddress.parse(choice.endpoint)
    http = BoundedClient(choice, meter, secrets=(key, *headers.values()))
    options: dict[str, Any] = {
        "api_key": key,
        "base_url": address.base,
        "max_retries": choice.retries,
        "default_headers": {"Accept-Encoding": "gzip, deflate", **headers},
        "http_client": http,
    }
    if address.query:
        (version,) = parse_qs(address.query)["api-version"]
        api: openai.AsyncOpenAI = openai.AsyncAzureOpenAI(api_version=version, **options)
    else:
        api = openai.AsyncOpenAI(**options)
    try:
        yield Api(api, http)
    finally:
        await api.close()


def close_api(loop: asyncio.AbstractEventLoop, opening: AsyncGenerator[Api]) -> None:
    """Close the client of somebody who is gone; this may run in any thread."""
    closing = opening.aclose()
    with suppress(RuntimeError, StopIteration):
        if loop.is_closed():  # nothing is left to wait for
            closing.send(None)
        else:
            loop.call_soon_threadsafe(loop.create_task, closing)


# Extensions of a response: the JSON of one, or its error.
ANSWER = "answer"
FAILURE = "failure"
_CONNECTIONS = 1024  # whoever makes the calls bounds how many are under way; the pool must not
_CONNECT_SECONDS = 10.0
_AGAIN = "x-should-retry"  # a header that openai obeys
# What the attempt came to that was made for openai's call, and with which it is to go on.
_MADE: ContextVar[httpx2.Response | httpx2.RequestError | None] = ContextVar("made", default=None)


class BoundedClient(openai.DefaultAioHttpClient):
    """The HTTP client of one endpoint in one event loop.

    Args:
        choice: the endpoint, the model, and the time limit of an attempt.
        meter: says when an attempt may be made, and how many at once.
        secrets: what requests are sent with and no reply may hold.
    """

    def __init__(
        self,
        choice: ModelChoice,
        meter: Meter,
        secrets: Sequence[str],
    ) -> None:
        super().__init__(
            limits=httpx2.Limits(max_connections=_CONNECTIONS),
            timeout=httpx2.Timeout(None, connect=min(_CONNECT_SECONDS, choice.timeout)),
            follow_redirects=False,  # elsewhere nobody is to get the key
            verify=_certificates(),
        )
        self._choice = choice
        self._meter = meter
        self._secrets = secrets
        self._limit = reply_limit()
        self._parameters = dialect_of(choice.endpoint, choice.model)
        self._pattern: httpx2.Request | None = None  # of all calls, but for the body
        self._writing = False
        self.written = asyncio.Event()  # openai has written a call, or failed to

    async def begin(self, body: bytes) -> httpx2.Response | None:
        """Make the first attempt at a call, if openai has written one before.

        Returns:
            The reply; None if openai is to make the call, or to go on from what this came to.

        Raises:
            BudgetError: no attempt is wanted any more.
            UnparsableAnswerError: the reply is too long, or no JSON.
        """
        if not self._writing:
            self._writing = True
            return None
        await self.written.wait()  # a moment: calls that start together need not all be written
        if self._pattern is None:
            return None
        try:
            reply = await self._attempt(_with_body(self._pattern, body))
        except httpx2.RequestError as error:
            _MADE.set(error)
            return None
        if reply.is_success:
            return reply
        _MADE.set(reply)
        return None

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Make one attempt of openai's; of a call that ``begin`` began, the first is made already.

        Returns:
            A response without a body: its extensions hold what it came to, ``ANSWER`` the JSON of
            a reply, ``FAILURE`` the error that it reports.

        Raises:
            BudgetError: no attempt is wanted any more.
            UnparsableAnswerError: the reply is too long, or no JSON.
            httpx2.RequestError: there is no reply.
        """
        first_attempt = _MADE.get()
        if first_attempt is None:
            if self._pattern is None and request.method == "POST":
                self._pattern = _with_body(request, b"")
                self.written.set()
            return await self._attempt(request)
        _MADE.set(None)
        if isinstance(first_attempt, httpx2.RequestError):
            raise first_attempt
        return first_attempt

    async def _attempt(self, request: httpx2.Request) -> httpx2.Response:
        await self._meter.before_attempt()
        async with self._meter.slot():
            try:
                async with asyncio.timeout(self._choice.timeout):
                    return await self._send_adapted(request)
            except TimeoutError:
                words = f"no reply within {self._choice.timeout:g} s"
                raise httpx2.ReadTimeout(words, request=request) from None

    async def _send_adapted(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request without what the endpoint refuses, of which more may be learnt."""
        while True:
            sent = request
            if self._parameters.refused:
                sent = _with_body(request, self._parameters.adapt(request.content))
            reply, data = await self._send_once(sent)
            if reply.status_code < 400:
                if self._parameters.refused:
                    self._meter.remark(self._parameters.remarks)
                return self._read(reply, data)
            report = ServerReport.read(reply.status_code, reply.headers, data)
            if not self._parameters.learn(report, sent.content):
                return self._failure(request, report, reply.headers)

    async def _send_once(self, request: httpx2.Request) -> tuple[httpx2.Response, bytes]:
        """Send a request; return the reply and its body, unpacked."""
        reply = await super().send(request, stream=True)
        try:
            packed = reply.headers.get("content-encoding")
            pieces = reply.aiter_raw()
            return reply, await collected(pieces, self._limit, self._choice.host, packed)
        finally:
            await reply.aclose()

    def _read(self, reply: httpx2.Response, data: bytes) -> httpx2.Response:
        """Return what a reply says that calls itself no error: it may be one."""
        text = hidden(data.decode("utf-8", "replace"), self._secrets)
        try:
            body = storable_json(text)
        except ValueError:
            raise no_completion(self._choice.host, text, self._choice.origins) from None
        report = read_report(body)
        if report is not None:
            return self._failure(reply.request, report, {})
        if not isinstance(body, dict) or not reply.is_success:
            raise no_completion(self._choice.host, text, self._choice.origins)
        reply.extensions[ANSWER] = body
        return reply

    def _failure(
        self, request: httpx2.Request, report: ServerReport, headers: Mapping[str, str]
    ) -> httpx2.Response:
        """Return the response that has openai try again, or give up, as the report means."""
        choice = self._choice
        error = failure_of(
            report,
            host=choice.host,
            model=choice.model,
            key_name=choice.api_key_env,
            origins=choice.origins,
        )
        reply_headers = {
            name: value for name, value in headers.items() if name.startswith("retry-after")
        }
        reply_headers[_AGAIN] = "true" if isinstance(error, UnavailableError) else "false"
        return httpx2.Response(
            report.status or 500,
            headers=reply_headers,
            request=request,
            extensions={FAILURE: error},
        )


def _with_body(request: httpx2.Request, body: bytes) -> httpx2.Request:
    """Return a request with another body; itself if that is its own."""
    if body is request.content:
        return request
    headers = httpx2.Headers(request.headers)
    headers["Content-Length"] = str(len(body))
    return httpx2.Request(
        request.method, request.url, headers=headers, content=body, extensions=request.extensions
    )


@cache
def _certificates() -> ssl.SSLContext:
    """Return what certificates are checked with, made once: it takes 20 ms."""
    return httpx2.create_ssl_context()

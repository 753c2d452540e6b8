"""Asking a plain search-results API: one address, one key, results as JSON."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import JsonValue

from spanlab.errors import ConfigurationError, ModelError, UnavailableError, missing_package
from spanlab.lm.attempts import Setback, insist
from spanlab.lm.bodies import collected, reply_limit
from spanlab.lm.cache import AnswerCache
from spanlab.lm.failures import failure_of, no_answer_in_time, no_connection, quoted, translate
from spanlab.lm.http_replies import HttpReply, words_of
from spanlab.lm.secrets import hidden, redact
from spanlab.retrievers.base import Found, Query
from spanlab.retrievers.endpoint import KEY, Endpoint
from spanlab.retrievers.fetched import Fetched
from spanlab.retrievers.results import passages_of
from spanlab.schema import Passage

if TYPE_CHECKING:
    import httpx

K = 5  # results per query
_LONGEST_QUERY = 2_000  # characters, URL-encoded up to 18,000; servers take 8,000 of most scripts


class _StatusError(Exception):
    """The API answered, with an error."""

    def __init__(self, reply: HttpReply) -> None:
        super().__init__(reply.message)
        self.reply = reply


class SearchApi:
    """Asks a search API.

    Args:
        endpoint: where and how.
        cache: what was fetched so far; None asks anew every time.
        k: how many results are kept, at least 1.

    Raises:
        UsageError: the HTTP library is not installed.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache | None, k: int = K) -> None:
        library()
        self._endpoint = endpoint
        self._fetched = Fetched(cache)
        self._k = k
        self.name = f"search:{endpoint.host}" + (f"/{k}" if k != K else "")

    async def search(self, query: Query) -> Found:
        """Ask the API for a query, on one line."""
        text = " ".join(query.text.split())[:_LONGEST_QUERY]
        query = replace(query, text=text, k=query.k or self._k)
        endpoint = self._endpoint
        shape = endpoint.shape.model_dump(mode="json")
        asked: list[JsonValue] = ["search", endpoint.url, shape, query.k, text]
        if query.before is not None:
            asked.append(query.before.isoformat())

        async def fetch() -> tuple[Passage, ...]:
            return await insist(lambda: self._ask(query), self._judge, endpoint.retries)

        return Found((text,), await self._fetched.passages(asked, fetch))

    async def _ask(self, query: Query) -> tuple[Passage, ...]:
        endpoint = self._endpoint
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if endpoint.key:
            bearer = "Bearer " if endpoint.header.lower() == "authorization" else ""
            headers[endpoint.header] = bearer + endpoint.key
        before = query.before.isoformat() if query.before else ""
        filled = endpoint.url.replace("{k}", str(query.k)).replace("{before}", before)
        async with (
            asyncio.timeout(endpoint.timeout),
            library().AsyncClient(timeout=None, headers=headers) as client,
        ):
            if "{query}" in filled:
                address = filled.replace("{query}", quote(query.text, ""))
                request = client.build_request("GET", address)
            else:
                request = client.build_request("POST", filled, json={"query": query.text})
            response = await client.send(request, stream=True)
            try:
                found = await self._read(response)
                return tuple(filter(query.admits, found))[: query.k]
            finally:
                await response.aclose()

    async def _read(self, response: httpx.Response) -> tuple[Passage, ...]:
        endpoint = self._endpoint
        data = await collected(response.aiter_bytes(), reply_limit(), endpoint.host)
        if not response.is_success:
            raise _StatusError(HttpReply.read(response.status_code, response.headers, data))
        text = hidden(data.decode("utf-8", errors="replace"), [endpoint.key])
        try:
            answer = json.loads(text)
        except ValueError:
            raise ModelError(f"{endpoint.host} sent no JSON{quoted(words_of(text))}") from None
        return passages_of(answer, endpoint.shape)

    def _judge(self, error: Exception) -> Setback:
        host, http = self._endpoint.host, library()
        if isinstance(error, _StatusError):
            reply = error.reply
            failed = failure_of(reply, host=host, model="the search", key_name=KEY)
            if reply.status == 404:
                failed = ConfigurationError(
                    f"{host} has nothing at this address; check SPANLAB_SEARCH_URL"
                )
            return Setback(failed, isinstance(failed, UnavailableError), reply.retry_after)
        if isinstance(error, TimeoutError):
            return Setback(no_answer_in_time(host, self._endpoint.timeout), again=True)
        if isinstance(error, http.TransportError):
            text = str(no_connection(host, error))
            text = text.replace("OPENAI_BASE_URL", "SPANLAB_SEARCH_URL")
            return Setback(UnavailableError(text), again=True)
        found = translate(error)
        words = redact(f"{host}: {found}")
        return Setback(found if isinstance(found, ModelError) else ModelError(words), again=False)


def library() -> ModuleType:
    """Return the HTTP library.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import httpx
    except ModuleNotFoundError as error:
        raise missing_package("a search API", error.name, "llm") from None
    return httpx

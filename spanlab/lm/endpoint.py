"""The client of one endpoint: sends a request under a time limit, with retries, and counts it.

The HTTP client is the one that ships with dspy. Beside it, OpenAI's own was measured on two cores
with 2,000 calls of 200 ms: it takes 1.7 to 2.3 ms of processor time a call (1.2 to 1.8 ms on
aiohttp) where this one takes 0.3 to 0.4 ms, and 1.9 times the ideal time with 128 calls at once
where this one takes 1.1 times.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from dspy.lm15 import AsyncOpenAIChatLM, OpenAIChatCompat, OpenAIChatLM

from spanlab.errors import BudgetError, ModelError
from spanlab.lm.attempts import insist
from spanlab.lm.choice import OPENAI, ModelChoice
from spanlab.lm.failures import at_first
from spanlab.lm.replies import check, setback_of, usage_of
from spanlab.lm.usage import Meter, Usage

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response

_CONNECTIONS = 1024  # whoever makes the calls bounds how many are under way; the pool must not
_CONNECT_SECONDS = 10.0


class EndpointClient:
    """A client of the endpoint of one choice, for all threads and event loops.

    Args:
        choice: model, endpoint, time limit and retries.
        meter: counts the calls, stops them at its budget and limits their rate.
        key: the endpoint's key.
    """

    def __init__(self, choice: ModelChoice, meter: Meter, key: str) -> None:
        self.choice = choice
        self.meter = meter
        self.key = key
        self._answered = False  # whether the endpoint has answered a call so far
        self._builder = OpenAIChatLM(**self._settings())
        self._lock = threading.Lock()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAIChatLM] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.choice.model!r} at {self.choice.host})"

    def built(self, request: Request) -> tuple[str, bytes]:
        """Return the URL and the body that a request is sent as."""
        sent = self._builder.build_request(request, stream=False)
        return sent.url, sent.body

    async def ask(self, request: Request) -> Response:
        """Send a request, again if that may help, and return the answer.

        Every attempt as a whole has the choice's time limit.

        Raises:
            BudgetError: the budget is used up; nothing was sent.
            ModelError: there is no answer; the message says why and holds no key.
        """
        choice = self.choice

        async def attempt() -> Response:
            async with asyncio.timeout(choice.timeout):
                return await self._client().complete(request)

        with self._counted() as call:
            response = await insist(
                attempt,
                lambda error: setback_of(error, choice),
                choice.retries,
                self.meter.before_attempt,
            )
            self._answered = True
            call.usage = usage_of(response, choice)
            check(response, choice)
        return response

    @contextmanager
    def _counted(self) -> Iterator[_CallUsage]:
        """Count a call: within the budget before it starts, and whatever it came to afterwards."""
        self.meter.start()
        call = _CallUsage()
        try:
            yield call
        except BudgetError:
            raise  # nothing went out
        except ModelError as error:
            call.usage += Usage(failed=1)
            raise (error if self._answered else at_first(error)) from None
        finally:
            self.meter.finish(self.choice.model, call.usage)

    def _client(self) -> AsyncOpenAIChatLM:
        """Return the client of the running event loop; connections belong to their loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._clients.get(loop)
            if client is None:
                client = self._clients[loop] = AsyncOpenAIChatLM(**self._settings())
                # Each limit on a read would make a task of it; an attempt is limited as a whole.
                client.transport = type(client.transport)(
                    connect_timeout=min(_CONNECT_SECONDS, self.choice.timeout),
                    read_timeout=None,
                    write_timeout=None,
                    pool_timeout=None,
                    max_connections=_CONNECTIONS,
                    proxy=_proxy_to(self.choice.endpoint),
                    trust_env=False,  # it would go through the whole environment for every call
                )
            return client

    def _settings(self) -> dict[str, Any]:
        # OpenAI has renamed the limit on the answer; other servers know the old name.
        renamed = self.choice.endpoint == OPENAI
        compat = OpenAIChatCompat(
            max_tokens_field="max_completion_tokens" if renamed else "max_tokens"
        )
        return {"api_key": self.key, "base_url": self.choice.endpoint, "compat": compat}


@dataclass
class _CallUsage:
    usage: Usage = field(default_factory=Usage)


def _proxy_to(url: str) -> str | None:
    """Return the proxy that the environment (HTTPS_PROXY, NO_PROXY …) names for a URL."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return None if not proxy or proxy_bypass(parts.hostname or "") else proxy

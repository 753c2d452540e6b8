"""What all calls under one choice share: clients, budget and cache."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from dspy.lm15 import (
    AsyncOpenAIChatLM,
    LM15Error,
    OpenAIChatCompat,
    OpenAIChatLM,
    response_from_openai_chat,
)

from spanlab.errors import ModelError
from spanlab.lm.cache import AnswerCache, cache_in
from spanlab.lm.choice import OPENAI, ModelChoice
from spanlab.lm.kept import POSSIBLE, KeptTransport
from spanlab.lm.replies import as_chat_body, check
from spanlab.lm.usage import Meter, Usage

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response

_CONNECTIONS = 1024  # the runner bounds concurrency; the pool must not
_CONNECT_SECONDS = 10.0


@dataclass
class _Rollout:
    """Which of several answers to one request is wanted: dspy's rollout_id, and the n-th of it."""

    name: object = None
    answers: int = 0


_rollout: ContextVar[_Rollout | None] = ContextVar("_rollout", default=None)
last_answer: ContextVar[tuple[Line, str] | None] = ContextVar("last_answer", default=None)


def want_rollout(name: object) -> None:
    """Say which rollout the next call in this context belongs to; the request does not."""
    _rollout.set(_Rollout(name))


class _Client(AsyncOpenAIChatLM):
    """Sends what the cache key was made from, where that is the request; else builds it as ever."""

    async def _build(self, build: Callable[..., Any], *args: Any, **how: Any) -> Any:
        built = _built.get()
        # What a server that takes no stop sequences is sent instead, lm15 learns while it builds.
        if built is not None and args and args[0] is built[0] and not built[0].config.stop:
            return built[1], ()
        return await super()._build(build, *args, **how)


_built: ContextVar[tuple[Request, Any] | None] = ContextVar("_built", default=None)


@dataclass(eq=False)
class Line:
    """A connection of one choice to its endpoint, for all threads and event loops.

    ``answered`` says that the endpoint has answered a call.
    """

    choice: ModelChoice
    meter: Meter
    cache: AnswerCache | None
    key: str = field(repr=False)
    answered: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _client: OpenAIChatLM | None = field(default=None, repr=False)
    _clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAIChatLM] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    @classmethod
    def open(cls, choice: ModelChoice, meter: Meter, *, cache: Path | None, key: str) -> Line:
        """Prepare a line; nothing is sent yet."""
        return cls(choice, meter, cache_in(cache) if cache else None, key)

    def client(self) -> OpenAIChatLM:
        """Return the client that all threads share."""
        with self._lock:
            if self._client is None:
                self._client = client = OpenAIChatLM(**self._settings())
                limits = self._limits()
                client.transport = type(client.transport)(**limits)
                if self.cache is not None and POSSIBLE:
                    client.transport = KeptTransport(self.cache.folder, limits, client.transport)
            return self._client

    def client_here(self) -> AsyncOpenAIChatLM:
        """Return the client of the running event loop; connections belong to their loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._clients.get(loop)
            if client is None:
                client = _Client(**self._settings())
                # The engine limits an attempt as a whole; here every read would become a task.
                limits = {**self._limits(), "read_timeout": None, "write_timeout": None}
                client.transport = type(client.transport)(**limits)
                self._clients[loop] = client
            return client

    def addressed(self, request: Request) -> Request:
        """Return the request under the name that the endpoint knows the model by."""
        named = request.model == self.choice.model
        return request if named else replace(request, model=self.choice.model)

    def slot(self, request: Request) -> str:
        """Return the cache key of this request, which says all that the answer depends on.

        The key of the endpoint is no part of it; which rollout of dspy's, and which of several
        answers to it, is.
        """
        rollout = _rollout.get() or _Rollout()
        sent = self.client().build_request(request, stream=False)
        _built.set((request, sent))
        digest = hashlib.sha256(sent.url.encode())
        digest.update(f"\n{rollout.name!r} {rollout.answers}\n".encode())
        digest.update(sent.body or b"")
        rollout.answers += 1
        return digest.hexdigest()

    def remembered(self, slot: str) -> Response | None:
        """Return the answer on disk, noted as such, or None."""
        return self._read(slot, self.cache.get(slot) if self.cache else None)

    def sought(self, slot: str) -> Response | None:
        """Return the answer that another machine paid for, or None; blocks while it is sought."""
        seeking = self.cache.seek(slot) if self.cache else None
        return None if seeking is None else self._found(slot, seeking.result())

    async def sought_here(self, slot: str) -> Response | None:
        """Do what ``sought`` does; the event loop goes on meanwhile."""
        seeking = self.cache.seek(slot) if self.cache else None
        return None if seeking is None else self._found(slot, await asyncio.wrap_future(seeking))

    def _found(self, slot: str, answer: dict[str, object] | None) -> Response | None:
        response = self._read(slot, answer)
        if response is not None and self.cache and answer is not None:
            self.cache.put(slot, answer)
        return response

    def _read(self, slot: str, answer: dict[str, object] | None) -> Response | None:
        if answer is None:
            return None
        try:
            response = response_from_openai_chat(answer, model=self.choice.model)
            check(response, self.choice)
        except (LM15Error, ModelError, AttributeError, KeyError, TypeError, ValueError):
            return None  # not what ``remember`` writes: asked anew and overwritten
        return self.shared(slot, response)

    def shared(self, slot: str, response: Response) -> Response:
        """Note that an answer was paid for by somebody else, and return it."""
        self.meter.note(self.choice.model, Usage(from_cache=1))
        self.note(slot)
        return response

    def remember(self, slot: str, response: Response) -> Future[None] | None:
        """Store an answer; the future is done when it is on disk."""
        if self.cache is None:
            return None
        self.note(slot)
        return self.cache.put(slot, as_chat_body(response))

    def note(self, slot: str) -> None:
        """Note which answer on disk this task had last, for ``forget_last_answer``."""
        last_answer.set((self, slot))

    def forget(self, slot: str) -> None:
        """Drop an answer from the disk, so that whoever asks next asks anew."""
        if self.cache is not None:
            self.cache.forget(slot).result()

    def _limits(self) -> dict[str, Any]:
        seconds = self.choice.timeout
        return {
            "connect_timeout": min(_CONNECT_SECONDS, seconds),
            "read_timeout": seconds,
            "write_timeout": seconds,
            "pool_timeout": None,
            "max_connections": _CONNECTIONS,
            "proxy": _proxy_to(self.choice.endpoint),
            "trust_env": False,  # it would go through the whole environment for every call
        }

    def _settings(self) -> dict[str, Any]:
        # OpenAI has renamed the limit on the answer; other servers know the old name.
        renamed = self.choice.endpoint == OPENAI
        compat = OpenAIChatCompat(
            max_tokens_field="max_completion_tokens" if renamed else "max_tokens"
        )
        return {"api_key": self.key, "base_url": self.choice.endpoint, "compat": compat}


def _proxy_to(url: str) -> str | None:
    """Return the proxy that the environment (HTTPS_PROXY, NO_PROXY …) names for a URL."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return None if not proxy or proxy_bypass(parts.hostname or "") else proxy


def forget_last_answer() -> None:
    """Drop the last answer of this task from the cache: it could not be read."""
    last = last_answer.get()
    if last is not None:
        line, slot = last
        line.forget(slot)
        last_answer.set(None)

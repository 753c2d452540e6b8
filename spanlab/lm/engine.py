"""Answers dspy's requests: from the cache, from a call under way that asks the same, or anew."""

from __future__ import annotations

import hashlib
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from dspy.lm15 import LM15Error, response_from_openai_chat

from spanlab.errors import ModelError
from spanlab.lm.cache import AnswerCache
from spanlab.lm.endpoint import EndpointClient
from spanlab.lm.replies import check
from spanlab.lm.thinking import thoughts_of, without_thoughts
from spanlab.lm.usage import Usage
from spanlab.runtime import wait

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response


class _Shared:
    """A copy of an LM shares its engine, which is never stored."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str:
        raise TypeError("an engine holds a key and open connections: it is never stored")


class Engine(_Shared):
    """Answers requests in any event loop.

    Args:
        client: sends what has to be asked.
        cache: the answers so far; None asks anew every time.
    """

    def __init__(self, client: EndpointClient, cache: AnswerCache | None) -> None:
        self.client = client
        self._cache = cache

    async def complete(self, request: Request) -> Response:
        """Return the answer to a request.

        Raises:
            ModelError: there is none; the message says why.
        """
        response = await self._answer(request)
        self.client.meter.think(thoughts_of(response))
        return response

    async def _answer(self, request: Request) -> Response:
        call = _call.get(None) or _Call()
        cache = self._cache
        if cache is None:
            return await self.client.ask(request)
        built = self.client.built(request)
        key = _key(built, call)
        call.kept.append((cache, key))
        found = self._read(await cache.get(key))
        if found is not None:
            return self._unpaid(found)
        asked_here = False

        async def ask() -> Response:
            nonlocal asked_here
            asked_here = True
            response = await self.client.ask_built(built)
            await cache.put(key, dict(response.provider_data or {}))
            return response

        # Others may be asking just that, in another part or job; with the same patience and key.
        same = (key, self.client.key, self.client.choice)
        response: Response = await cache.single_flight.join(same, ask)
        return response if asked_here else self._unpaid(response)

    def _read(self, answer: dict[str, object] | None) -> Response | None:
        """Return a cached answer; None for one that cannot be used, which is asked for anew."""
        if answer is None:
            return None
        choice = self.client.choice
        try:
            response = without_thoughts(response_from_openai_chat(answer, model=choice.model))
            check(response, choice)
        except (LM15Error, ModelError, AttributeError, KeyError, TypeError, ValueError):
            return None
        return response

    def _unpaid(self, response: Response) -> Response:
        self.client.meter.note(self.client.choice.model, Usage(from_cache=1))
        return response


def _key(built: Any, call: _Call) -> str:
    """Return the cache key of a request, which says all that the answer depends on.

    The key of the endpoint is no part of it; which rollout of dspy's, and which of several
    answers to it, is.
    """
    digest = hashlib.sha256(built.url.encode())
    digest.update(f"\n{call.rollout!r} {len(call.kept)}\n".encode())
    digest.update(built.body)
    return digest.hexdigest()


class ThreadEngine(_Shared):
    """Answers requests in threads: ``engine`` does, in the background event loop.

    Beside answering, dspy asks it what the endpoint can do.
    """

    supports_function_calling = True
    supports_reasoning = True
    supported_params = frozenset(
        {"max_completion_tokens", "max_tokens", "reasoning_effort", "response_format", "seed"}
        | {"stop", "temperature", "tools", "tool_choice", "top_p"}
    )

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.supports_response_schema = engine.client.choice.structured

    def complete(self, request: Request) -> Response:
        """Do what ``Engine.complete`` does."""
        return wait(self._engine.complete(request))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._engine.client!r})"


@dataclass
class _Call:
    """A call of an LM: dspy's rollout_id, and where its answers (``n`` of them) are cached."""

    rollout: object = None
    kept: list[tuple[AnswerCache, str]] = field(default_factory=list)


_call: ContextVar[_Call] = ContextVar("_call")


def begin_call(rollout: object) -> None:
    """Note in this context that a call of an LM begins, and its rollout_id."""
    _call.set(_Call(rollout))


async def forget_last_call() -> None:
    """Drop the answers of this task's last call from the cache: one of them is of no use."""
    call = _call.get(None) or _Call()
    while call.kept:
        cache, key = call.kept.pop()
        await cache.forget(key)

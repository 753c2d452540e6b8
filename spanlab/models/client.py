"""The client of one endpoint: answers from the cache, or from openai, each of them counted."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import httpx2
import openai
from dspy.lm15 import (
    LM15Error,
    OpenAIChatCompat,
    OpenAIChatLM,
    Request,
    Response,
    response_from_openai_chat,
)

from spanlab.base.errors import (
    BudgetError,
    ModelError,
    RefusedError,
    SpanlabError,
    UnparsableAnswerError,
)
from spanlab.base.redaction import redact
from spanlab.models.cache import AnswerCache, answer_key, current_call
from spanlab.models.choice import OPENAI, EndpointAddress, ModelChoice
from spanlab.models.failures import (
    as_first_failure,
    call_failed,
    no_answer_in_time,
    no_completion,
    no_connection,
    unreadable_answer,
)
from spanlab.models.meter import Meter, count_tokens
from spanlab.models.parsing import thoughts_of, without_thoughts
from spanlab.models.transport import ANSWER, FAILURE, Api, close_api, open_api
from spanlab.schema.usage import Usage

_PATH = "/chat/completions"
_ENDLESS = 2**53  # tokens
# Of an entry in the list of models: vLLM; Groq; OpenRouter and Together; Mistral.
_WINDOWS = ("max_model_len", "context_window", "context_length", "max_context_length")


class SharedObject:
    """An object that copies of an LM share, and that is never stored."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a client holds a key and open connections: it is never stored")


class EndpointClient(SharedObject):
    """A client of the endpoint of one choice, for all threads and event loops.

    Args:
        choice: model, endpoint, time limit and retries.
        meter: counts the calls, stops them at its budget and limits their rate.
        key: the endpoint's key.
        headers: sent with every request, beside the key.
        cache: the answers so far; None asks anew every time.
    """

    def __init__(
        self,
        choice: ModelChoice,
        meter: Meter,
        key: str,
        headers: dict[str, str],
        cache: AnswerCache | None = None,
    ) -> None:
        self.choice = choice
        self.meter = meter
        self._key = key
        self._headers = headers
        self._cache = cache
        self._address = EndpointAddress.parse(choice.endpoint)
        self._url = f"{self._address.base}{_PATH}"  # whole: openai takes longer with a part of it
        self._answered = False  # whether the endpoint has answered a call so far
        # OpenAI has renamed the limit on the answer; other servers know the old name.
        renamed = choice.endpoint == OPENAI
        self.limit_name: Literal["max_completion_tokens", "max_tokens"] = (
            "max_completion_tokens" if renamed else "max_tokens"
        )
        self._builder = OpenAIChatLM(
            api_key="none",  # it writes bodies alone
            base_url=self._address.base,
            compat=OpenAIChatCompat(max_tokens_field=self.limit_name),
        )
        self._lock = threading.Lock()
        self._apis: dict[asyncio.AbstractEventLoop, Api] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.choice.model!r} at {self.choice.host})"

    async def complete(self, request: Request) -> Response:
        """Return the answer to a request: from the cache, or from who asks the same, or anew.

        Raises:
            BudgetError: the budget is used up; nothing was sent.
            ModelError: there is no answer; the message says why and holds no key.
        """
        return await self.answer(self._builder.build_request(request, stream=False).body)

    async def answer(self, body: bytes) -> Response:
        """Return the answer to the body of a request; see ``complete``."""
        response = await (self._ask(body) if self._cache is None else self._answer_once(body))
        self.meter.think(thoughts_of(response))
        return response

    async def window(self) -> int | None:
        """Return how many tokens prompt and answer may have, as the endpoint's list of models says.

        Returns:
            None where there is no list, or the list does not say so.
        """
        try:
            models = await self.list_models()
            (model,) = (
                listed_model for listed_model in models if listed_model["id"] == self.choice.model
            )
        except (SpanlabError, openai.OpenAIError, ValueError, KeyError, TypeError):
            return None  # not every server has one, and nothing but this figure hangs on it
        sizes = (model.get(name) for name in _WINDOWS)
        return next((size for size in sizes if isinstance(size, int) and size > 0), None)

    async def list_models(self) -> list[dict[str, Any]]:
        """Return the endpoint's list of models as it came; what goes wrong is raised as it is."""
        api = await self._api()
        once: Any = {"max_retries": 0}
        listed = await api.client.get("/models", cast_to=httpx2.Response, options=once)
        models: list[dict[str, Any]] = listed.extensions[ANSWER]["data"]
        return models

    async def _answer_once(self, body: bytes) -> Response:
        """Return an answer that is in the cache, is being asked for, or is put there."""
        assert self._cache is not None
        cache, call = self._cache, current_call()
        key = answer_key(self._address.completed(self._url), body, call)
        call.answers.append((cache, key))
        cached_response = self._usable(await cache.get(key))
        if cached_response is not None:
            return self._note_unpaid(cached_response)
        asked_here = False

        async def ask() -> Response:
            nonlocal asked_here
            asked_here = True
            response = await self._ask(body)
            await cache.put(key, dict(response.provider_data or {}))
            return response

        # Others may be asking just that, in another part or job; with the same patience and key.
        same = (key, self._key, self.choice)
        response: Response = await cache.single_flight.join(same, ask)
        return response if asked_here else self._note_unpaid(response)

    def _usable(self, answer: dict[str, object] | None) -> Response | None:
        """Return a cached answer; None for one that cannot be used, which is asked for anew."""
        if answer is None:
            return None
        try:
            response = without_thoughts(response_from_openai_chat(answer, model=self.choice.model))
            _check(response, self.choice)
        except (LM15Error, ModelError, AttributeError, KeyError, TypeError, ValueError):
            return None
        return response

    def _note_unpaid(self, response: Response) -> Response:
        self.meter.note(self.choice.model, Usage(from_cache=1))
        return response

    async def _ask(self, body: bytes) -> Response:
        """Send a request, again if that may help, and count what it came to."""
        choice = self.choice
        async with self._count_call() as call:
            answer = await self._post(body)
            usage = answer.pop("usage", None)
            if isinstance(usage, dict):
                answer["usage"] = {name: count for name, count in usage.items() if _is_count(count)}
            if answer.get("choices") == []:  # so answer filters that let nothing through
                raise RefusedError(f"{choice.host} let no answer of {choice.model} through")
            try:
                full_response = response_from_openai_chat(answer, model=choice.model)
            except Exception as error:  # noqa: BLE001 - of what servers send, dspy raises all kinds
                name = type(error).__name__
                raise no_completion(choice.host, name, self.choice.origins) from None
            self._answered = True
            call.usage = usage_of(full_response, choice, body)
            response = without_thoughts(full_response)
            _check(response, choice)
        return response

    async def _post(self, body: bytes) -> dict[str, Any]:
        """Return the JSON that openai's client gets for a body.

        Raises:
            SpanlabError: it gets none; never its own error, which may quote a key.
        """
        try:
            api = await self._api()
            reply = await api.post(self._url, body)
        except SpanlabError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told in our words
            raise _failure_of(error, self.choice) from None
        answer: dict[str, Any] = reply.extensions[ANSWER]
        return answer

    @asynccontextmanager
    async def _count_call(self) -> AsyncIterator[CallUsage]:
        """Count a call: within the budget before it starts, and whatever it came to afterwards."""
        await self.meter.admit()
        call = CallUsage()
        try:
            yield call
        except BudgetError:
            raise  # nothing went out
        except ModelError as error:
            call.usage += Usage(failed=1)
            raise (error if self._answered else as_first_failure(error)) from None
        finally:
            self.meter.finish(self.choice.model, call.usage)

    async def _api(self) -> Api:
        """Return openai's client for the running event loop, to which connections belong."""
        loop = asyncio.get_running_loop()
        api = self._apis.get(loop)
        if api is None:
            opening = open_api(
                self.choice,
                self.meter,
                key=self._key,
                headers=self._headers,
            )
            api = await anext(opening)
            weakref.finalize(self, close_api, loop, opening).atexit = False
            with self._lock:
                going_on = {loop: api for loop, api in self._apis.items() if not loop.is_closed()}
                self._apis = {**going_on, loop: api}
        return api


@dataclass
class CallUsage:
    """Tokens and cost of one call, filled in once they are known."""

    usage: Usage = field(default_factory=Usage)


def _failure_of(error: Exception, choice: ModelChoice) -> ModelError:
    """Return the error of ours that stands for one of openai's client; it has no cause."""
    if isinstance(error, openai.APIStatusError):
        failure: ModelError = error.response.extensions[FAILURE]
        return failure
    cause = error.__cause__ or error
    if isinstance(cause, httpx2.ReadTimeout):
        return no_answer_in_time(choice.host, choice.timeout)
    if isinstance(error, openai.APIConnectionError):
        return no_connection(choice.host, cause, choice.origins)
    return call_failed(error)


def usage_of(response: Response, choice: ModelChoice, sent: bytes) -> Usage:
    """Return one call's tokens as the endpoint counts them, and their cost.

    The cost is what the endpoint states, else what the tokens come to at the choice's price; None
    if there is no price. Tokens that the endpoint does not count are counted here, about.

    Args:
        response: the answer.
        choice: whose price holds.
        sent: the request's body.
    """
    spent = response.usage
    counted = bool(spent.input_tokens)
    input_tokens = spent.input_tokens or count_tokens(sent.decode())
    answered = spent.output_tokens or (0 if counted else count_tokens(response.text or ""))
    cached = min(spent.cache_read_tokens or 0, input_tokens)
    cost = _stated_cost(response)
    if cost is None and choice.price is not None:
        cost = choice.price.of(input_tokens, cached, answered)
    return Usage(
        calls=1,
        input_tokens=input_tokens,
        cached_tokens=cached,
        output_tokens=answered,
        cost=cost,
        uncounted=0 if counted else 1,
    )


def _stated_cost(response: Response) -> float | None:
    usage = (response.provider_data or {}).get("usage")
    cost = usage.get("cost") if isinstance(usage, dict) else None
    total = cost.get("total_cost") if isinstance(cost, dict) else None
    return float(total) if isinstance(total, int | float) else None


def _is_count(count: object) -> bool:
    """Say whether a figure of a reply, or what it has in place of one, can be added up."""
    return isinstance(count, dict) or (isinstance(count, int) and 0 <= count < _ENDLESS)


def _check(response: Response, choice: ModelChoice) -> None:
    """Refuse an answer that is none.

    Raises:
        RefusedError: the model or its provider's filter declined.
        UnparsableAnswerError: the answer was cut off or is empty, or there is none at all.
    """
    if not (response.provider_data or {}).get("choices"):
        raise no_completion(choice.host, "", choice.origins)
    declined = next((part.text for part in response.message.parts if part.type == "refusal"), None)
    if declined or response.finish_reason == "content_filter":
        words = " ".join((declined or "").split())[:200]
        raise RefusedError(
            redact(f"{choice.model} refused to answer" + (f": “{words}”" if words else ""))
        )
    if response.finish_reason == "length":
        raise UnparsableAnswerError(
            f"the answer of {choice.model} was cut off after "
            f"{response.usage.output_tokens or 'too many'} tokens; raise max_tokens and retry"
        )
    if not (response.text or "").strip() and not response.tool_calls:
        if thoughts_of(response):
            raise UnparsableAnswerError(
                f"{choice.model} thought and never answered: its reasoning fills the reply; "
                "raise max_tokens or lower the reasoning effort, then retry the failed items"
            )
        raise unreadable_answer("")

"""``dspy.LM`` on the client of an endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dspy
from dspy.lm15 import Request, Response
from pydantic import JsonValue

from spanlab.base.runtime import wait
from spanlab.models.adapters import ChatAnswers, JsonAnswers
from spanlab.models.cache import begin_call
from spanlab.models.choice import ModelOptions
from spanlab.models.client import EndpointClient, SharedObject

_PLAIN = ("temperature", "top_p", "seed", "reasoning_effort")  # in dspy's order
_NAMES = {"max_completion_tokens": "max_tokens"}


class BlockingEngine(SharedObject):
    """Answers requests in threads: the client does, in the background event loop.

    Beside answering, dspy asks it what the endpoint can do.
    """

    supports_function_calling = True
    supports_reasoning = True
    supported_params = frozenset(
        {"max_completion_tokens", "max_tokens", "reasoning_effort", "response_format", "seed"}
        | {"stop", "temperature", "tools", "tool_choice", "top_p"}
    )

    def __init__(self, client: EndpointClient) -> None:
        self._client = client
        self.supports_response_schema = client.choice.structured

    def complete(self, request: Request) -> Response:
        """Do what ``EndpointClient.complete`` does."""
        return wait(self._client.complete(request))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client!r})"


class LanguageModel(dspy.LM):
    """A language model that tells its client which rollout is asked for; a request does not.

    Args:
        client: answers.
    """

    def __init__(self, client: EndpointClient) -> None:
        choice = client.choice
        super().__init__(
            choice.model,
            cache=False,  # the client has its own, which holds JSON and knows the meter
            num_retries=0,  # openai's client tries again
            engine=BlockingEngine(client),
            async_engine=client,
        )
        self._client = client
        self._timeout = choice.timeout
        self.window = choice.window  # tokens of prompt and answer together, None if not known
        self.adapter: dspy.Adapter = JsonAnswers() if choice.structured else ChatAnswers()

    @property
    def options(self) -> dict[str, JsonValue]:
        """How it is asked, by names of ``ModelOptions``, without what the endpoint decides."""
        options = {_NAMES.get(name, name): value for name, value in self.kwargs.items()}
        options["structured"] = isinstance(self.adapter, JsonAnswers) or None
        options["timeout"] = None if self._timeout == ModelOptions().timeout else self._timeout
        option_fields = ModelOptions.model_fields
        return {name: options[name] for name in option_fields if options.get(name) is not None}

    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Answer in the calling thread; see dspy."""
        begin_call(kwargs.get("rollout_id", self.kwargs.get("rollout_id")))
        return super().__call__(prompt, messages=messages, **kwargs)

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Answer in the running event loop; see dspy.

        dspy sends every call through two worker threads, for images read from disk and for a
        list of prices. A plain call with nobody listening, where there is neither, goes to the
        client directly.
        """
        begin_call(kwargs.get("rollout_id", self.kwargs.get("rollout_id")))
        body = None if self._has_listeners() else self._plain_body(messages, **self.kwargs | kwargs)
        if body is None:
            return await super().acall(prompt, messages=messages, **kwargs)
        return [(await self._client.answer(body)).text]

    async def chat(self, messages: Sequence[Mapping[str, str]], **fields: JsonValue) -> str:
        """Return the text that answers messages, which are sent as they are, past dspy's prompts.

        Args:
            messages: roles and contents.
            **fields: further ones of OpenAI's protocol, such as ``response_format``.

        Raises:
            ModelError, BudgetError: see ``EndpointClient.complete``.
        """
        begin_call(self.kwargs.get("rollout_id"))
        limits = dict.fromkeys(("max_tokens", "max_completion_tokens"), self._client.limit_name)
        options = {
            limits.get(name, name): value
            for name, value in self.kwargs.items()
            if value is not None and name != "rollout_id"
        }
        body = {"model": self.model, "messages": list(messages), **options, **fields}
        response = await self._client.answer(json.dumps(body, ensure_ascii=False).encode())
        return response.text or ""

    def _plain_body(self, messages: Any, **options: Any) -> bytes | None:
        """Return the body of a call as dspy writes it, byte by byte: it is a part of cache keys.

        Args:
            messages: of the call.
            options: what is said with it; None leaves one to the endpoint.

        Returns:
            None for a call with more to it than texts and the usual options.
        """
        limits = [options.pop(name, None) for name in ("max_tokens", "max_completion_tokens")]
        sent_fields = {
            self._client.limit_name: next((limit for limit in limits if limit is not None), None),
            **{name: options.pop(name, None) for name in _PLAIN},
        }
        options.pop("rollout_id", None)
        efforts = {None, "low", "medium", "high"}
        has_more = any(value is not None for value in options.values())
        effort = sent_fields["reasoning_effort"]
        if has_more or None not in limits or effort not in efforts:
            return None
        if not messages or any(list(message) != ["role", "content"] for message in messages):
            return None
        roles = tuple(message["role"] for message in messages)
        texts = all(type(message["content"]) is str for message in messages)
        if roles not in {("user",), ("system", "user")} or not texts:
            return None
        for name in ("temperature", "top_p"):
            if sent_fields[name] is not None:
                sent_fields[name] = float(sent_fields[name])
        fields = {name: value for name, value in sent_fields.items() if value is not None}
        body = {"model": self.model, "messages": messages, **fields}
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()

    def _has_listeners(self) -> bool:
        settings = dspy.settings
        listening = settings.callbacks or settings.send_stream or settings.usage_tracker
        return bool(self.callbacks or listening or not settings.disable_history)

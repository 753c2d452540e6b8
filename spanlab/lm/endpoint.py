"""The client of one endpoint: sends a request under a time limit, with retries, and counts it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dspy.lm15 import OpenAIChatCompat, OpenAIChatLM, response_from_openai_chat

from spanlab.errors import BudgetError, ModelError, SpanlabError
from spanlab.inbound import reply_limit
from spanlab.lm.addresses import Address
from spanlab.lm.attempts import insist
from spanlab.lm.choice import OPENAI, ModelChoice
from spanlab.lm.dialects import dialect_of
from spanlab.lm.failures import at_first
from spanlab.lm.http_replies import HttpReply, reported
from spanlab.lm.replies import ReportedError, check, no_completion, setback_of, usage_of
from spanlab.lm.thinking import without_thoughts
from spanlab.lm.transport import HttpAnswer, NoReplyError, Transport
from spanlab.lm.usage import Meter, Usage
from spanlab.redaction import hidden
from spanlab.schema import storable_json

# Of an entry in the list of models: vLLM; Groq; OpenRouter and Together; Mistral.
_ENDLESS = 2**53  # tokens
_WINDOWS = ("max_model_len", "context_window", "context_length", "max_context_length")

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response


class EndpointClient:
    """A client of the endpoint of one choice, for all threads and event loops.

    Args:
        choice: model, endpoint, time limit and retries.
        meter: counts the calls, stops them at its budget and limits their rate.
        key: the endpoint's key.
        headers: sent with every request, beside the key.
    """

    def __init__(
        self, choice: ModelChoice, meter: Meter, key: str, headers: dict[str, str] | None = None
    ) -> None:
        self.choice = choice
        self.meter = meter
        self.key = key
        self._address = Address.parse(choice.endpoint)
        self._headers = {**self._address.key_header(key), **(headers or {})}
        self._answered = False  # whether the endpoint has answered a call so far
        self._builder = OpenAIChatLM(**self._settings())
        self._dialect = dialect_of(choice.endpoint, choice.model)
        self._transport = Transport(choice.endpoint, choice.timeout, reply_limit())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.choice.model!r} at {self.choice.host})"

    def built(self, request: Request) -> Any:
        """Return what a request is sent as: an object with ``url`` and ``body``."""
        sent = self._builder.build_request(request, stream=False)
        sent.url = self._address.completed(sent.url)
        kept = [pair for pair in sent.headers if pair[0].lower() != "authorization"]
        sent.headers = [*kept, *self._headers.items()]
        return sent

    async def ask(self, request: Request) -> Response:
        """Send a request, again if that may help, and return the answer; see ``ask_built``."""
        return await self.ask_built(self.built(request))

    async def ask_built(self, built: Any) -> Response:
        """Send what a request was built into.

        Every attempt as a whole has the choice's time limit.

        Raises:
            BudgetError: the budget is used up; nothing was sent.
            ModelError: there is no answer; the message says why and holds no key.
        """
        choice = self.choice

        async def attempt() -> Response:
            async with self.meter.slot(), asyncio.timeout(choice.timeout):
                return self._read(await self._sent(built))

        with self._counted() as call:
            whole = await insist(
                attempt,
                lambda error: setback_of(error, choice),
                choice.retries,
                self.meter.before_attempt,
            )
            self._answered = True
            call.usage = usage_of(whole, choice, built.body)
            response = without_thoughts(whole)
            check(response, choice)
        return response

    async def window(self, request: Request) -> int | None:
        """Return how many tokens prompt and answer may have, as the endpoint's list of models says.

        Args:
            request: any; how it is sent is how the list is asked for.

        Returns:
            None where there is no list, or the list does not say so.
        """
        url = self._address.completed(f"{self._address.base}/models")
        listing = replace(self.built(request), method="GET", url=url, body=b"")
        try:
            async with asyncio.timeout(self.choice.timeout):
                answer = await self._transport.send(listing)
            models = storable_json(answer.data)["data"]
            (model,) = (each for each in models if each["id"] == self.choice.model)
        except (SpanlabError, NoReplyError, TimeoutError, ValueError, KeyError, TypeError):
            return None  # not every server has one, and nothing but this figure hangs on it
        sizes = (model.get(name) for name in _WINDOWS)
        return next((size for size in sizes if isinstance(size, int) and size > 0), None)

    async def _sent(self, built: Any) -> HttpAnswer:
        """Send a request, without what the endpoint refuses, and return what is no refusal.

        Raises:
            ReportedError: the reply is an error.
        """
        while True:
            body = self._dialect.adapted(built.body)
            sent = built if body is built.body else replace(built, body=body)
            answer = await self._transport.send(sent)
            if answer.status < 400:
                self.meter.remark(self._dialect.remarks)
                return answer
            reply = HttpReply.read(answer.status, answer.headers, answer.data)
            if not self._dialect.learn(reply, body):
                raise ReportedError(reply)

    def _read(self, answer: HttpAnswer) -> Response:
        """Return the completion that a reply is.

        Raises:
            ReportedError: it is an error under a status that says otherwise.
            UnparsableAnswerError: it is neither.
        """
        text = hidden(answer.data.decode("utf-8", "replace"), [self.key, *self._headers.values()])
        try:
            body = storable_json(text)
        except ValueError:
            raise no_completion(self.choice, text) from None
        error = reported(body)
        if error is not None:
            raise ReportedError(error)
        if not isinstance(body, dict) or answer.status >= 300:
            raise no_completion(self.choice, text)
        usage = body.pop("usage", None)
        if isinstance(usage, dict):
            body["usage"] = {name: count for name, count in usage.items() if _is_count(count)}
        return response_from_openai_chat(body, model=self.choice.model)

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

    def _settings(self) -> dict[str, Any]:
        # OpenAI has renamed the limit on the answer; other servers know the old name.
        renamed = self.choice.endpoint == OPENAI
        compat = OpenAIChatCompat(
            max_tokens_field="max_completion_tokens" if renamed else "max_tokens"
        )
        return {"api_key": self.key, "base_url": self._address.base, "compat": compat}


def _is_count(count: object) -> bool:
    """Say whether a figure of a reply, or what it has in place of one, can be added up."""
    return isinstance(count, dict) or (isinstance(count, int) and 0 <= count < _ENDLESS)


@dataclass
class _CallUsage:
    usage: Usage = field(default_factory=Usage)

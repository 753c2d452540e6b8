"""Search models: chat models that look on the web first and say where they looked.

Perplexity's Sonar names its sources in ``search_results`` and ``citations`` beside the answer;
OpenAI's search models and others annotate the message with ``url_citation``. Both are understood.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from spanlab.errors import (
    BudgetError,
    MissingKeyError,
    ModelError,
    RefusedError,
    UnavailableError,
    UnparsableAnswerError,
    UsageError,
)
from spanlab.lm.attempts import Setback, insist, seconds_of
from spanlab.lm.choice import ModelChoice, Price
from spanlab.lm.failures import (
    Reply,
    at_first,
    failure_of,
    no_answer_in_time,
    no_connection,
    translate,
    unreadable,
)
from spanlab.lm.secrets import key_of
from spanlab.lm.usage import Meter, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion

ENDPOINT = "https://api.perplexity.ai"
MODEL = "sonar-pro"
KEY = "SPANLAB_SEARCH_API_KEY"
_NAMES = {"OPENAI_BASE_URL": "SPANLAB_SEARCH_BASE_URL", "SPANLAB_MODEL": "SPANLAB_SEARCH_MODEL"}


@dataclass(frozen=True)
class Source:
    """A page that a search model has looked at; a part that it does not tell is None."""

    url: str | None = None
    title: str | None = None
    date: str | None = None
    snippet: str | None = None


@dataclass(frozen=True)
class SearchAnswer:
    """What a search model says; marks such as ``[2]`` in the text count ``sources`` from 1."""

    text: str
    sources: tuple[Source, ...] = ()


def search_choice(environ: Mapping[str, str] = os.environ) -> ModelChoice:
    """Read ``SPANLAB_SEARCH_MODEL``, ``SPANLAB_SEARCH_BASE_URL`` and ``SPANLAB_PRICE_SEARCH``.

    Without them it is Perplexity's sonar-pro. The key is in ``SPANLAB_SEARCH_API_KEY``.

    Raises:
        UsageError: a variable holds something unusable.
    """
    price = environ.get("SPANLAB_PRICE_SEARCH")
    try:
        return ModelChoice(
            model=environ.get("SPANLAB_SEARCH_MODEL") or MODEL,
            base_url=environ.get("SPANLAB_SEARCH_BASE_URL") or ENDPOINT,
            api_key_env=KEY,
            price=Price.parse(price) if price else None,
        )
    except ValueError:
        raise UsageError(
            "SPANLAB_SEARCH_BASE_URL is no address of an endpoint: it begins with http:// or "
            "https:// and holds neither keys nor passwords"
        ) from None


class SearchModel:
    """A search model, for any number of tasks, threads and event loops.

    Args:
        choice: which model, where; the key is read from the environment.
        meter: counts the calls and stops them at its budget.

    Raises:
        MissingKeyError: no key is set for Perplexity's or OpenAI's own endpoint.
        UsageError: openai is not installed, or a budget in money is set and no price.
    """

    def __init__(self, choice: ModelChoice, meter: Meter) -> None:
        try:
            import openai
        except ModuleNotFoundError as error:
            raise UsageError(
                f"search models need {error.name}: pip install 'spanlab[llm]'"
            ) from None
        if choice.base_url == ENDPOINT and not os.environ.get(choice.api_key_env, "").strip():
            raise MissingKeyError(f"no key for {choice.host}: set {choice.api_key_env}")
        if meter.budget.cost is not None and choice.price is None:
            raise UsageError(
                f"a budget in US dollars needs the price of {choice.model}: "
                "set SPANLAB_PRICE_SEARCH=input,cached,output (per million tokens)"
            )
        self._openai = openai
        self._key = key_of(choice)
        self._meter = meter
        self._answered = False
        self.choice = choice

    def __repr__(self) -> str:
        return f"SearchModel({self.choice.model!r} at {self.choice.host})"

    async def ask(self, query: str, before: date | None = None) -> SearchAnswer:
        """Ask the model.

        Args:
            query: what to search for and answer.
            before: pages published on that day or later are left out, by models that can do so:
                Perplexity's.

        Raises:
            ModelError: it gave no answer; the message says why and holds no key.
        """
        self._meter.start()
        spent = Usage()
        try:
            async with self._client() as client:
                completion = await insist(
                    lambda: self._complete(client, query, before),
                    self._judge,
                    self.choice.retries,
                    self._meter.turn,
                )
            self._answered = True
            spent = self._usage(completion.usage)
            return _answer(completion, self.choice)
        except BudgetError:
            raise  # nothing went out
        except ModelError as error:
            spent += Usage(failed=1)
            raise (error if self._answered else at_first(error)) from None
        finally:
            self._meter.finish(self.choice.model, spent)

    def _client(self) -> AsyncOpenAI:
        # One per question: an answer takes seconds, and no connection outlives its event loop.
        return self._openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self.choice.endpoint,
            max_retries=0,
            timeout=self.choice.timeout,
            http_client=self._openai.DefaultAsyncHttpxClient(verify=_certificates()),
        )

    async def _complete(
        self, client: AsyncOpenAI, query: str, before: date | None
    ) -> ChatCompletion:
        choice = self.choice
        limits = before is not None and "sonar" in choice.model
        options: dict[str, Any] = {
            "temperature": choice.temperature,
            "max_tokens": choice.max_tokens,
            "seed": choice.seed,
            "reasoning_effort": choice.reasoning_effort,
        }
        completion = await client.chat.completions.create(
            model=choice.model,
            messages=[{"role": "user", "content": query}],
            extra_body={"search_before_date_filter": f"{before:%m/%d/%Y}"} if limits else None,
            **{name: value for name, value in options.items() if value is not None},
        )
        if not getattr(completion, "choices", None):
            raise ValueError("no choices")
        return cast("ChatCompletion", completion)

    def _judge(self, error: Exception) -> Setback:
        host, library = self.choice.host, self._openai
        if isinstance(error, library.APITimeoutError):
            return Setback(no_answer_in_time(host, self.choice.timeout), again=True)
        if isinstance(error, library.APIStatusError):
            return self._refused(error)
        if isinstance(error, library.APIConnectionError):
            return Setback(_renamed(no_connection(host, error)), again=True)
        if isinstance(error, ValueError):
            words = f"{host} sent a reply that is no chat completion; check SPANLAB_SEARCH_BASE_URL"
            return Setback(UnparsableAnswerError(words), again=False)
        found = translate(error)
        return Setback(found if isinstance(found, ModelError) else ModelError(str(found)), False)

    def _refused(self, error: Any) -> Setback:
        reply = Reply(
            error.status_code,
            _message(error.body) or str(error.message),
            str(error.code or ""),
            seconds_of(error.response.headers.get("retry-after")),
        )
        choice = self.choice
        failed = failure_of(
            reply, host=choice.host, model=choice.model, key_name=choice.api_key_env
        )
        again = isinstance(failed, UnavailableError)
        return Setback(_renamed(failed), again=again, after=reply.retry_after)

    def _usage(self, usage: CompletionUsage | None) -> Usage:
        if usage is None:
            return Usage(calls=1, cost=None)
        asked, answered = usage.prompt_tokens or 0, usage.completion_tokens or 0
        details = usage.prompt_tokens_details
        cached = min((details.cached_tokens if details else 0) or 0, asked)
        price = self.choice.price
        cost = _stated_cost(usage)
        if cost is None and price is not None:
            cost = price.of(asked, cached, answered)
        return Usage(
            calls=1, input_tokens=asked, cached_tokens=cached, output_tokens=answered, cost=cost
        )


@cache
def _certificates() -> ssl.SSLContext:
    """Load the certificates once: that takes longer than the rest of a client."""
    return ssl.create_default_context()


def _answer(completion: ChatCompletion, choice: ModelChoice) -> SearchAnswer:
    message = completion.choices[0].message
    if message.refusal or completion.choices[0].finish_reason == "content_filter":
        raise RefusedError(f"{choice.model} refused to answer")
    text = _unicode(message.content or "")
    if not text:
        raise unreadable("")
    return SearchAnswer(text, _sources(completion.model_extra or {}, message.annotations or []))


def _sources(extra: Mapping[str, Any], annotations: list[Any]) -> tuple[Source, ...]:
    results = extra.get("search_results")
    if isinstance(results, list) and results:
        return tuple(_source(result) for result in results if isinstance(result, dict))
    cited = extra.get("citations")
    if isinstance(cited, list) and cited:
        return tuple(
            _source(each) if isinstance(each, dict) else Source(url=_unicode(str(each)))
            for each in cited
        )
    named = [note.url_citation for note in annotations if getattr(note, "url_citation", None)]
    return tuple(
        dict.fromkeys(
            Source(url=_unicode(each.url), title=_unicode(each.title) or None) for each in named
        )
    )


def _source(result: dict[str, Any]) -> Source:
    def text(*names: str) -> str | None:
        found = (result.get(name) for name in names)
        return next(
            (each.strip() for each in found if isinstance(each, str) and each.strip()), None
        )

    return Source(
        url=text("url", "link"),
        title=text("title", "name"),
        date=text("date", "last_updated"),
        snippet=text("snippet", "content", "text"),
    )


def _unicode(text: str | None) -> str:
    """Return text without white space around it, nor the half surrogate pairs that JSON allows."""
    return (text or "").strip().encode("utf-8", "replace").decode()


def _stated_cost(usage: CompletionUsage) -> float | None:
    cost = (usage.model_extra or {}).get("cost")
    total = cost.get("total_cost") if isinstance(cost, dict) else None
    return float(total) if isinstance(total, int | float) else None


def _message(body: object) -> str:
    if isinstance(body, dict):
        inner = body.get("error", body)
        found = inner.get("message") if isinstance(inner, dict) else inner
        return str(found or "")
    return ""


def _renamed(error: ModelError) -> ModelError:
    """Let the advice in an error name the variables that searching is configured by."""
    text = str(error)
    for old, new in _NAMES.items():
        text = text.replace(old, new)
    return type(error)(text)

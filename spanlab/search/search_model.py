"""Search models: asked, and their answers with their sources kept as passages.

Perplexity's Sonar names its sources in ``search_results`` and ``citations`` beside the answer;
OpenAI's search models and others annotate the message with ``url_citation``. Both are understood.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from spanlab.base.errors import MissingKeyError, UsageError
from spanlab.base.settings import WebSearchSettings
from spanlab.models.building import endpoint_client
from spanlab.models.cache import AnswerCache
from spanlab.models.choice import ModelChoice, ModelOrigins, TokenPrice
from spanlab.models.meter import Meter
from spanlab.schema import Passage
from spanlab.search.base import PER_SEARCH, RetrievedPassages, SearchQuery
from spanlab.search.search import RetrievalCache

if TYPE_CHECKING:
    from dspy.lm15 import Response


_LONGEST_NAME = 150  # characters of the model's; what wraps this one adds to it
_MARK = re.compile(r"\[(\d{1,3})\]")


class SearchModelRetriever:
    """Asks a search model; the answer comes first, its sources after it.

    Args:
        choice: which model; see ``search_choice``.
        meter: counts the calls and stops them at its budget.
        cache: what was fetched so far; None asks anew every time.
        k: how many sources are kept beside the answer, at least 1.

    Raises:
        MissingKeyError: the endpoint needs a key and none is set.
        UsageError: a budget in money is set and no price.
    """

    def __init__(
        self, choice: ModelChoice, meter: Meter, cache: AnswerCache | None, k: int = PER_SEARCH
    ) -> None:
        self._model = SearchModel(choice, meter)
        self._fetched = RetrievalCache(cache)
        self._k = k
        self.name = f"web:{choice.model[:_LONGEST_NAME]}" + (f"/{k}" if k != PER_SEARCH else "")

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        """Ask the model; with a date in the query, what it says itself is no evidence.

        Its answer is written now, from pages of any date; its sources say when they are from.
        """
        choice, k = self._model.choice, query.k or self._k
        unset = dict.fromkeys(("temperature", "seed", "max_tokens", "reasoning_effort"))
        settings: JsonValue = {**unset, "model": choice.model}  # as earlier versions wrote it
        key: list[JsonValue] = ["web", choice.endpoint, settings, k, query.text]
        if query.before is not None:
            key.append(query.before.isoformat())
        if choice.sent:
            key.append(choice.sent)

        async def fetch() -> tuple[Passage, ...]:
            answer = await self._model.ask(query.text, before=query.before)
            if query.before is None:
                return passages(answer, choice.model, k)
            sources = passages(answer, choice.model, len(answer.sources))[1:]
            return tuple(filter(query.admits, sources))[:k]

        return RetrievedPassages((query.text,), await self._fetched.passages(key, fetch))


def passages(answer: SearchAnswer, model: str, k: int) -> tuple[Passage, ...]:
    """Return the answer of a search model and its sources as passages.

    Marks such as ``[2]`` stay in the answer; below it stands which page each of them means.

    Args:
        answer: what it said.
        model: who said it.
        k: how many sources to keep.

    Returns:
        The answer, then its first ``k`` sources by their snippets; of a source without a snippet
        there is its title, or else its address.
    """
    answer_passage = Passage(text=answer.text + _links(answer), title=f"Answer of {model}")
    return (
        answer_passage,
        *(passage for source in answer.sources[:k] for passage in _passage(source)),
    )


def _links(answer: SearchAnswer) -> str:
    marks = sorted({int(number) for number in _MARK.findall(answer.text)})
    lines = [
        f"[{mark}] {' '.join(filter(None, (source.title, source.url)))}"
        for mark in marks
        if 0 < mark <= len(answer.sources)
        for source in answer.sources[mark - 1 : mark]
    ]
    return "\n\n" + "\n".join(lines) if lines else ""


def _passage(source: CitedSource) -> list[Passage]:
    text = source.snippet or source.title or source.url
    if not text:
        return []
    return [Passage(text=text, title=source.title, url=source.url, date=source.date)]


ENDPOINT = WebSearchSettings().search_base_url
_ORIGINS = ModelOrigins(
    name=WebSearchSettings.variable("search_model"),
    address=WebSearchSettings.variable("search_base_url"),
    price=WebSearchSettings.variable("price_search"),
)


@dataclass(frozen=True)
class CitedSource:
    """A page that a search model has looked at; a part that it does not tell is None."""

    url: str | None = None
    title: str | None = None
    date: str | None = None
    snippet: str | None = None


@dataclass(frozen=True)
class SearchAnswer:
    """What a search model says; marks such as ``[2]`` in the text count ``sources`` from 1."""

    text: str
    sources: tuple[CitedSource, ...] = ()


def search_choice(environ: Mapping[str, str] = os.environ) -> ModelChoice:
    """Return the search model of the environment; see ``WebSearchSettings``.

    Without variables it is Perplexity's sonar-pro.

    Raises:
        UsageError: a variable holds something unusable.
    """
    settings = WebSearchSettings.read(environ)
    price = settings.price_search
    try:
        return ModelChoice(
            model=settings.search_model,
            base_url=settings.search_base_url,
            api_key_env=WebSearchSettings.variable("search_api_key"),
            price=TokenPrice.parse(price) if price else None,
            origins=_ORIGINS,
        )
    except ValueError:
        raise UsageError(
            "SPANLAB_SEARCH_BASE_URL is not an address of an endpoint: it begins with http:// or "
            "https:// and holds neither keys nor passwords"
        ) from None


class SearchModel:
    """A search model, for any number of tasks, threads and event loops.

    Args:
        choice: which model, where; the key is read from the environment.
        meter: counts the calls and stops them at its budget.

    Raises:
        MissingKeyError: no key is set for Perplexity's or OpenAI's own endpoint.
        UsageError: a budget in money is set and no price.
    """

    def __init__(self, choice: ModelChoice, meter: Meter) -> None:
        if choice.base_url == ENDPOINT and not os.environ.get(choice.api_key_env, "").strip():
            raise MissingKeyError(f"no key for {choice.host}: set {choice.api_key_env}")
        self._client = endpoint_client(choice, meter)
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
        from dspy.lm15 import request_from_openai_chat

        model, messages = self.choice.model, [{"role": "user", "content": query}]
        body = {"model": model, "messages": messages, **self.choice.sent}
        request = request_from_openai_chat(body)
        if before is not None and "sonar" in model:
            limit = {"search_before_date_filter": f"{before:%m/%d/%Y}"}
            request = replace(request, config=replace(request.config, extensions=limit))
        return _answer(await self._client.complete(request))


def _answer(response: Response) -> SearchAnswer:
    body = response.provider_data or {}
    message = body["choices"][0]["message"]
    sources = _sources(body, message.get("annotations") or [])
    return SearchAnswer((response.text or "").strip(), sources)


def _sources(body: Mapping[str, Any], annotations: list[Any]) -> tuple[CitedSource, ...]:
    results = body.get("search_results")
    if isinstance(results, list) and results:
        return tuple(_source(result) for result in results if isinstance(result, dict))
    cited = body.get("citations")
    if isinstance(cited, list) and cited:
        return tuple(
            _source(source) if isinstance(source, dict) else CitedSource(url=str(source).strip())
            for source in cited
        )
    page_links = (note.get("url_citation") for note in annotations if isinstance(note, dict))
    return tuple(
        dict.fromkeys(_source(result) for result in page_links if isinstance(result, dict))
    )


def _source(result: dict[str, Any]) -> CitedSource:
    def text(*names: str) -> str | None:
        values = (result.get(name) for name in names)
        return next(
            (text.strip() for text in values if isinstance(text, str) and text.strip()), None
        )

    return CitedSource(
        url=text("url", "link"),
        title=text("title", "name"),
        date=text("date", "last_updated"),
        snippet=text("snippet", "content", "text"),
    )

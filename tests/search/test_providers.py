"""The search services that are known by name, each asked in its own form over real HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest
from model_fixtures import KEY
from wire import HOSTILE, MIB, wire

from spanlab.base.errors import (
    BudgetError,
    ConfigurationError,
    MissingKeyError,
    ModelError,
    SpanlabError,
    UsageError,
    WrongKeyError,
)
from spanlab.base.settings import Settings
from spanlab.models import Meter
from spanlab.schema import Passage
from spanlab.schema.usage import Budget, Usage
from spanlab.search.base import SearchQuery
from spanlab.search.endpoint import SearchEndpoint
from spanlab.search.provider import ProviderName
from spanlab.search.providers import PROVIDERS, WEB
from spanlab.search.results import without_age
from spanlab.search.search import SearchApi
from spanlab.search.spec import SearchSpec, retriever
from spanlab.testing import ModelServer, ScriptedReply, caller_with, fail

MAY = SearchQuery("tower\nheight", language="de", before=date(2024, 5, 1))
WIKI = {
    "batchcomplete": True,
    "query": {
        "searchinfo": {"totalhits": 2},
        "search": [
            {
                "ns": 0,
                "title": "Eiffel Tower",
                "pageid": 9232,
                "snippet": 'The <span class="searchmatch">tower</span> is 330 m &amp; iron.',
                "timestamp": "2024-04-01T09:12:00Z",
            },
            {"ns": 0, "title": "Late", "pageid": 1, "snippet": "L", "timestamp": "2025-04-01"},
        ],
    },
}
WIKI_ASKED = {
    "action": "query",
    "list": "search",
    "format": "json",
    "formatversion": "2",
    "srprop": "snippet|timestamp",
    "srsearch": "tower height",
    "srlimit": "10",
}


class Case(NamedTuple):
    """What a service answers, what is sent to it, and what is found."""

    answer: dict[str, Any]
    sent: dict[str, Any]
    found: Passage
    header: tuple[str, str] | None = None


CASES: dict[ProviderName, Case] = {
    "brave": Case(
        {
            "type": "search",
            "web": {
                "type": "search",
                "results": [
                    {
                        "title": "T",
                        "url": "https://a.example",
                        "description": "A <strong>tower</strong> of 330&nbsp;m",
                        "page_age": "2024-04-01T10:00:00",
                        "age": "April 1, 2024",
                    },
                    {"title": "Late", "url": "u", "description": "L", "page_age": "2024-05-02"},
                ],
            },
        },
        {
            "q": "tower height",
            "count": "10",
            "freshness": "1970-01-01to2024-04-30",
            "search_lang": "de",
            "result_filter": "web",
            "text_decorations": "false",
        },
        Passage(
            text="A tower of 330 m",
            title="T",
            url="https://a.example",
            date="2024-04-01T10:00:00",
        ),
        ("x-subscription-token", KEY),
    ),
    "google": Case(
        {
            "kind": "customsearch#search",
            "items": [
                {
                    "title": "T",
                    "link": "https://a.example",
                    "snippet": "330 m",
                    "pagemap": {"metatags": [{"article:published_time": "2024-04-01T10:00:00Z"}]},
                },
            ],
        },
        {"q": "tower height", "num": "10", "sort": "date:r::20240430", "hl": "de", "cx": "mine"},
        Passage(text="330 m", title="T", url="https://a.example", date="2024-04-01T10:00:00Z"),
        ("x-goog-api-key", KEY),
    ),
    "mediawiki": Case(
        WIKI,
        WIKI_ASKED,
        Passage(
            text="The tower is 330 m & iron.",
            title="Eiffel Tower",
            url="{server}/index.php?title=Eiffel_Tower",
            date="2024-04-01T09:12:00Z",
        ),
    ),
    "perplexity": Case(
        {
            "results": [
                {
                    "title": "T",
                    "url": "https://a.example",
                    "snippet": "330 m",
                    "date": "2024-04-01",
                    "last_updated": "2025-09-19",
                },
                {"title": "Late", "url": "u", "snippet": "L", "date": "2024-05-01"},
            ],
            "id": "x",
        },
        {
            "query": "tower height",
            "max_results": 10,
            "search_before_date_filter": "05/01/2024",
            "search_language_filter": ["de"],
        },
        Passage(text="330 m", title="T", url="https://a.example", date="2024-04-01"),
        ("authorization", KEY),
    ),
    "searxng": Case(
        {
            "query": "q",
            "number_of_results": 0,
            "results": [
                {
                    "url": "https://a.example",
                    "title": "T",
                    "content": "330 m",
                    "publishedDate": "2024-04-01T00:00:00",
                    "engine": "duckduckgo",
                },
                {"url": "u", "title": "Late", "content": "L", "publishedDate": "2024-06-01"},
            ],
            "unresponsive_engines": [],
        },
        {"q": "tower height", "format": "json", "language": "de"},
        Passage(text="330 m", title="T", url="https://a.example", date="2024-04-01T00:00:00"),
    ),
    "serper": Case(
        {
            "searchParameters": {"q": "q"},
            "organic": [
                {
                    "title": "T",
                    "link": "https://a.example",
                    "snippet": "330 m",
                    "date": "Apr 1, 2024",
                    "position": 1,
                },
                {"title": "Late", "link": "u", "snippet": "L", "date": "3 days ago"},
            ],
            "credits": 1,
        },
        {"q": "tower height", "num": 10, "tbs": "cdr:1,cd_max:04/30/2024", "hl": "de"},
        Passage(text="330 m", title="T", url="https://a.example", date="Apr 1, 2024"),
        ("x-api-key", KEY),
    ),
    "tavily": Case(
        {
            "query": "q",
            "answer": None,
            "results": [
                {"title": "T", "url": "https://a.example", "content": "330 m", "score": 0.9},
                {"title": "Late", "url": "u", "content": "L", "published_date": "2024-05-01"},
            ],
            "response_time": 1.2,
        },
        {
            "query": "tower height",
            "max_results": 10,
            "end_date": "2024-04-30",
            "search_depth": "basic",
        },
        Passage(text="330 m", title="T", url="https://a.example"),
        ("authorization", KEY),
    ),
    "wikipedia": Case(
        WIKI,
        WIKI_ASKED,
        Passage(
            text="The tower is 330 m & iron.",
            title="Eiffel Tower",
            url="https://de.wikipedia.org/wiki/Eiffel_Tower",
            date="2024-04-01T09:12:00Z",
        ),
    ),
}


def environment(name: ProviderName, server: ModelServer) -> dict[str, str]:
    """Return variables that lead to a server in place of the service, with its key."""
    provider = PROVIDERS[name]
    address = f"{server.url}/api.php" if "wiki" in name else server.url
    keys = {provider.key: KEY} if provider.key else {}
    return (
        {provider.variable: address} | keys | dict.fromkeys(provider.environment.values(), "mine")
    )


@pytest.mark.parametrize("name", WEB)
def test_every_service_is_asked_in_its_form_with_date_language_and_number(
    name: ProviderName, model_server: ModelServer
) -> None:
    case = CASES[name]
    model_server.script(lambda ask: ScriptedReply(body=case.answer))
    endpoint = SearchEndpoint.of(name, environment(name, model_server))
    found = asyncio.run(SearchApi(endpoint, None, name=name).search(MAY))
    assert found.queries == ("tower height",)
    url = (case.found.url or "").replace("{server}", model_server.url)
    assert found.passages == (case.found.model_copy(update={"url": url}),)
    (ask,) = model_server.requests
    sent = ask.body if PROVIDERS[name].posts else dict(parse_qsl(urlsplit(ask.path).query))
    assert (ask.method == "POST", sent) == (PROVIDERS[name].posts, case.sent)
    if case.header is not None:
        header, key = case.header
        given = ask.caller if header == "authorization" else ask.headers[header]
        assert given == (caller_with(key) if header == "authorization" else key)
    assert KEY not in ask.path
    assert KEY not in repr(endpoint)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_service_that_needs_a_key_or_an_address_says_which_variable(name: ProviderName) -> None:
    provider = PROVIDERS[name]
    if not provider.address:
        with pytest.raises(UsageError, match=provider.variable):
            SearchEndpoint.of(name, {})
    elif provider.key and provider.needs_key:
        with pytest.raises(MissingKeyError, match=provider.key):
            SearchEndpoint.of(name, {})
    else:
        assert SearchEndpoint.of(name, {}).url == provider.address


def test_a_key_goes_to_no_address_that_was_typed(model_server: ModelServer) -> None:
    model_server.script(lambda ask: ScriptedReply(body=CASES["tavily"].answer))
    environ = {"TAVILY_API_KEY": KEY, "SPANLAB_SEARCH_API_KEY": KEY}
    for endpoint in (
        SearchEndpoint.of("tavily", environ, url=model_server.url),
        SearchEndpoint.read(environ, url=model_server.url),
    ):
        asyncio.run(SearchApi(endpoint, None).search(MAY))
    assert {ask.caller for ask in model_server.requests} == {caller_with("")}


def test_a_wrong_key_is_named_by_the_services_own_variable(model_server: ModelServer) -> None:
    model_server.script(lambda ask: fail(401, f"no {KEY}"))
    endpoint = SearchEndpoint.of("serper", environment("serper", model_server))
    with pytest.raises(WrongKeyError, match="SERPER_API_KEY") as caught:
        asyncio.run(SearchApi(endpoint, None).search(MAY))
    assert KEY not in str(caught.value)


def test_a_long_query_ends_with_a_whole_word_within_the_services_limits() -> None:
    brave = PROVIDERS["brave"]
    assert brave.cut("word " * 60).count("word") == 50
    cut = brave.cut("longwords " * 45)
    assert len(cut) <= 400
    assert cut.endswith("longwords")
    assert brave.cut("字" * 500) == "字" * 400


def test_searches_are_counted_with_their_price_and_stop_at_the_budget(
    model_server: ModelServer, settings_here: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the cache costs nothing, whoever asks and however many results they read."""
    model_server.script(lambda ask: ScriptedReply(body=CASES["brave"].answer))
    for name, value in environment("brave", model_server).items():
        monkeypatch.setenv(name, value)
    meter = Meter(Budget(searches=2))
    five, ten = (
        retriever(SearchSpec(provider="brave", k=k), meter, settings_here) for k in (5, 10)
    )
    assert (five.name, ten.name) == (
        f"search:brave@127.0.0.1:{model_server.port}",
        f"search:brave@127.0.0.1:{model_server.port}/10",
    )

    async def all_at_once() -> None:
        await asyncio.gather(
            five.search(SearchQuery("a")), ten.search(SearchQuery("a")), ten.search(MAY)
        )

    asyncio.run(all_at_once())
    assert meter.by_model == {"search:brave": Usage(searches=2, cost=0.01)}
    with pytest.raises(BudgetError, match="2 searches is used up: no further search"):
        asyncio.run(five.search(SearchQuery("b")))
    asyncio.run(five.search(SearchQuery("a")))
    assert model_server.count == 2


@pytest.mark.parametrize(
    ("written", "price"), [("", 0.005), ("0.003", 0.003), ("dear", None), ("-1", None)]
)
def test_the_price_of_a_search_may_be_ones_own(written: str, price: float | None) -> None:
    environ = {"BRAVE_API_KEY": KEY, "SPANLAB_PRICE_PER_SEARCH": written}
    if price is not None:
        assert SearchEndpoint.of("brave", environ).price == price
        return
    with pytest.raises(UsageError, match=r"SPANLAB_PRICE_PER_SEARCH=.*: it is a price"):
        SearchEndpoint.of("brave", environ)


def test_searches_are_spaced_as_a_plan_wants_it(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, settings_here: Settings
) -> None:
    model_server.script(lambda ask: ScriptedReply(body=CASES["brave"].answer))
    for name, value in environment("brave", model_server).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SPANLAB_SEARCHES_PER_MINUTE", "600")
    found = [retriever(SearchSpec(provider="brave"), Meter(), settings_here) for _ in range(2)]

    async def all_at_once() -> float:
        begun = asyncio.get_running_loop().time()
        await asyncio.gather(*(found[n % 2].search(SearchQuery(f"q{n}")) for n in range(4)))
        return asyncio.get_running_loop().time() - begun

    assert asyncio.run(all_at_once()) > 0.29  # three pauses of 0.1 s, however fast the machine is
    monkeypatch.setenv("SPANLAB_SEARCHES_PER_MINUTE", "many")
    with pytest.raises(UsageError, match="SPANLAB_SEARCHES_PER_MINUTE=many: it is a number"):
        retriever(SearchSpec(provider="brave"), Meter(), settings_here)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("3 days ago", "2024-05-07"),
        ("an hour ago", "2024-05-10"),
        ("2 weeks ago", "2024-04-26"),
        ("Yesterday", "2024-05-09"),
        ("1 month ago", "2024-04-12"),
        ("vor 3 Tagen", "vor 3 Tagen"),
        ("2024-01-01", "2024-01-01"),
    ],
)
def test_an_age_becomes_the_latest_day_it_may_mean(text: str, kept: str) -> None:
    assert without_age(text, date(2024, 5, 10)) == kept


@pytest.mark.parametrize("path", ["", "/", "/search", "/own/search", "/own"])
def test_a_searxng_is_named_by_its_host_or_path(path: str) -> None:
    endpoint = SearchEndpoint.of(
        "searxng", {"SPANLAB_SEARXNG_URL": f"http://search.example:8888{path}"}
    )
    own = "/own" if "own" in path else ""
    assert endpoint.url == f"http://search.example:8888{own}/search"


def test_a_searxng_that_gives_no_json_says_what_its_settings_lack(
    model_server: ModelServer,
) -> None:
    model_server.script(lambda ask: fail(403, "Forbidden"))
    endpoint = SearchEndpoint.of("searxng", environment("searxng", model_server))
    with pytest.raises(ConfigurationError, match="has to list json below search"):
        asyncio.run(SearchApi(endpoint, None).search(MAY))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("google", {"kind": "customsearch#search", "searchInformation": {"totalResults": "0"}}),
        ("brave", {"type": "search", "query": {"original": "q"}}),
        ("serper", {"searchParameters": {"q": "q"}, "credits": 1}),
        ("searxng", {"results": [{"url": "u", "title": "T", "content": ""}]}),
        ("mediawiki", {"batchcomplete": True, "query": {"search": []}}),
    ],
)
def test_nothing_found_is_no_failure(
    name: ProviderName, answer: dict[str, Any], model_server: ModelServer
) -> None:
    """Some services leave the list of results out then."""
    endpoint = SearchEndpoint.of(name, environment(name, model_server))
    model_server.script(lambda ask: ScriptedReply(body=answer))
    assert asyncio.run(SearchApi(endpoint, None).search(MAY)).passages == ()
    model_server.script(lambda ask: ScriptedReply(body={"a": 1}))
    with pytest.raises(ModelError, match="no list of search results"):
        asyncio.run(SearchApi(endpoint, None).search(MAY))


@pytest.mark.parametrize("name", ["brave", "arxiv"])
@pytest.mark.parametrize("how", HOSTILE)
def test_a_reply_that_is_made_to_harm_ends_in_words(
    name: ProviderName, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_REPLY_LIMIT", "8")
    provider = PROVIDERS[name]
    with wire(lambda _line, _body: HOSTILE[how]()) as server:
        environ = {provider.variable: server.url, provider.key: KEY}
        endpoint = replace(SearchEndpoint.of(name, environ), timeout=60.0, retries=0)
        with pytest.raises(SpanlabError) as caught:
            asyncio.run(SearchApi(endpoint, None).search(MAY))
        assert len(str(caught.value)) < 1000
        assert server.sent < 64 * MIB

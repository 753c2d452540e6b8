"""Plain search APIs over real HTTP, in the shapes that the usual services answer in."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from model_fixtures import KEY

from spanlab.base.errors import (
    InputError,
    ModelError,
    NoCreditError,
    UnavailableError,
    UsageError,
    WrongKeyError,
)
from spanlab.base.settings import Settings
from spanlab.models import Meter
from spanlab.models.cache import answer_file
from spanlab.schema import Item, Passage
from spanlab.search.base import ensure, retrieve
from spanlab.search.endpoint import SearchEndpoint
from spanlab.search.results import ResultShape, passages_of
from spanlab.search.search import FailedAttempt, SearchApi, pause_after
from spanlab.search.spec import SearchSpec, retriever, retriever_spec
from spanlab.testing import ModelServer, ScriptedReply, fail, in_turn

ITEM = Item(id="a", question="How tall is\nthe tower?", answer="It is 312 m tall.")
TAVILY = {
    "query": "q",
    "results": [
        {"title": "Tower", "url": "https://a.example", "content": " 330 m. ", "score": 0.9},
        {"title": "Empty", "url": "https://b.example", "content": ""},
        {"url": "https://c.example", "content": "Tall.", "published_date": "2024-05-01"},
    ],
}
DRIPPING = ScriptedReply(body=TAVILY, pause=0.05)
EXPECTED = (
    Passage(text="330 m.", title="Tower", url="https://a.example"),
    Passage(text="Tall.", url="https://c.example", date="2024-05-01"),
)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(TAVILY, EXPECTED, id="Tavily"),
        pytest.param(
            {"hits": [{"title": "T", "url": "u", "snippets": ["One.", " ", "Two."]}]},
            (Passage(text="One.\n\nTwo.", title="T", url="u"),),
            id="you.com",
        ),
        pytest.param(
            {"results": {"web": [{"title": "T", "snippets": ["One."], "page_age": "2024"}]}},
            (Passage(text="One.", title="T", date="2024"),),
            id="you.com, newer",
        ),
        pytest.param(
            {"web": {"results": [{"title": "T", "url": "u", "description": "D", "age": "1 day"}]}},
            (Passage(text="D", title="T", url="u", date="1 day"),),
            id="Brave",
        ),
        pytest.param(
            {"organic": [{"title": "T", "link": "u", "snippet": "S"}]},
            (Passage(text="S", title="T", url="u"),),
            id="Serper",
        ),
        pytest.param([{"text": "S"}], (Passage(text="S"),), id="a bare list"),
        pytest.param(
            {"results": [{"text": "half \ud83d"}]},
            (Passage(text="half \ufffd"),),
            id="half an emoji",
        ),
        pytest.param({"results": []}, (), id="nothing found"),
    ],
)
def test_shapes_that_are_known(answer: Any, expected: tuple[Passage, ...]) -> None:
    assert passages_of(answer, ResultShape()) == expected


def test_a_shape_of_ones_own() -> None:
    answer: Any = {
        "data": [{"docs": [{"meta": {"name": "T", "href": "u"}, "body": {"plain": "S"}}]}]
    }
    shape = ResultShape(
        results="data.0.docs", text="body.plain", title="meta.name", url="meta.href"
    )
    assert passages_of(answer, shape) == (Passage(text="S", title="T", url="u"),)


@pytest.mark.parametrize(
    ("answer", "shape", "message"),
    [
        pytest.param({"a": 1}, ResultShape(), r"no list .* found \['a'\]", id="no results"),
        pytest.param(TAVILY, ResultShape(results="data"), "data: ", id="wrong path"),
        pytest.param(
            TAVILY, ResultShape(text="body"), "no search result has a text", id="wrong text"
        ),
    ],
)
def test_another_shape_is_said_to_be_one(answer: Any, shape: ResultShape, message: str) -> None:
    with pytest.raises(InputError, match=message):
        passages_of(answer, shape)


def test_the_query_goes_into_the_address_and_the_key_into_its_header(
    model_server: ModelServer,
) -> None:
    model_server.script(lambda ask: ScriptedReply(body=TAVILY))
    endpoint = SearchEndpoint(f"{model_server.url}/s?q={{query}}&n={{k}}", header="X-Key", key=KEY)
    found = asyncio.run(retrieve(ITEM, SearchApi(endpoint, None, k=2)))
    assert found.queries == ("How tall is the tower?",)
    assert found.passages == EXPECTED[:2]
    (ask,) = model_server.requests
    assert (ask.method, ask.path) == ("GET", "/v1/s?q=How%20tall%20is%20the%20tower%3F&n=10")
    assert ask.headers["x-key"] == KEY
    assert KEY not in repr(endpoint)


def test_without_a_place_in_the_address_the_query_is_posted(model_server: ModelServer) -> None:
    model_server.script(lambda ask: ScriptedReply(body=TAVILY))
    asyncio.run(retrieve(ITEM, SearchApi(SearchEndpoint(model_server.url), None, k=1)))
    (ask,) = model_server.requests
    assert (ask.method, ask.body) == ("POST", {"query": "How tall is the tower?"})


def test_what_was_fetched_is_not_fetched_again_also_if_it_was_nothing(
    model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(lambda ask: ScriptedReply(body={"results": []}))
    endpoint = SearchEndpoint(f"{model_server.url}?q={{query}}")
    for _ in range(2):
        assert (
            asyncio.run(retrieve(ITEM, SearchApi(endpoint, answer_file(tmp_path)))).passages == ()
        )
    assert model_server.count == 1


@pytest.mark.parametrize(
    ("after", "done", "least", "most"),
    [(None, 0, 0.005, 0.01), (None, 3, 0.04, 0.08), (None, 20, 15.0, 30.0), (2.0, 3, 2.0, 2.2)],
)
def test_the_pause_before_another_attempt_doubles_unless_the_endpoint_says_how_long(
    after: float | None, done: int, least: float, most: float
) -> None:
    """The first is a hundredth of a second here, half a second for people."""
    failed = FailedAttempt(UnavailableError("gone"), again=True, after=after)
    pause = pause_after(failed, done, 99)
    assert pause is not None
    assert least <= pause <= most
    assert pause_after(failed, 99, 99) is None


@pytest.mark.parametrize(
    ("reply", "error", "message", "calls"),
    [
        pytest.param(fail(401, f"no {KEY}"), WrongKeyError, "SPANLAB_SEARCH_API_KEY", 1, id="key"),
        pytest.param(fail(402), NoCreditError, "credits exhausted", 1, id="no credit"),
        pytest.param(fail(429, retry_after=0), UnavailableError, "rate limit", 3, id="rate limit"),
        pytest.param(fail(500), UnavailableError, "status 500", 3, id="server"),
        pytest.param(fail(404), ModelError, "check SPANLAB_SEARCH_URL", 1, id="no such address"),
        pytest.param(ScriptedReply(status=302), ModelError, "status 302", 1, id="elsewhere"),
        pytest.param(ScriptedReply(drop=True), UnavailableError, "no connection", 3, id="dropped"),
        pytest.param(
            ScriptedReply(hang=True), UnavailableError, "no answer within", 3, id="timeout"
        ),
        pytest.param(
            ScriptedReply(body=b"<p>hi"), ModelError, "sent no JSON: “hi”", 1, id="no JSON"
        ),
        pytest.param(
            ScriptedReply(body={"a": 1}), ModelError, "no list of search results", 1, id="shape"
        ),
        pytest.param(
            ScriptedReply(body=b"[" + b" " * 2**24),
            ModelError,
            "more than 16 MiB",
            1,
            id="too much",
        ),
        pytest.param(DRIPPING, UnavailableError, "no answer within", 3, id="a byte at a time"),
    ],
)
def test_every_failure_is_a_reason_and_nothing_is_kept(
    model_server: ModelServer,
    tmp_path: Path,
    *,
    reply: ScriptedReply,
    error: type[Exception],
    message: str,
    calls: int,
) -> None:
    """Exhausted credits are said as such; a key is never quoted."""
    model_server.script(lambda ask: reply)
    timed_out = reply.hang or bool(reply.pause)
    limit = 0.5 if timed_out else 60.0
    environment = {
        "SPANLAB_SEARCH_URL": f"{model_server.url}?q={{query}}",
        "SPANLAB_SEARCH_API_KEY": KEY,
    }
    named = SearchEndpoint.read(environment)
    quick = SearchEndpoint(named.url, key=named.key, timeout=limit, retries=2)
    with pytest.raises(error, match=message) as caught:
        asyncio.run(ensure(ITEM, SearchApi(quick, answer_file(tmp_path))))
    assert KEY not in str(caught.value)
    # On a loaded machine the time may be over before a request has come.
    assert model_server.count == calls or (timed_out and model_server.count < calls)

    model_server.script(in_turn(fail(503), ScriptedReply(body=TAVILY)))
    item = asyncio.run(ensure(ITEM, SearchApi(named, answer_file(tmp_path))))
    assert item.passages == EXPECTED


def test_the_environment_says_where_and_how() -> None:
    environment = {
        "SPANLAB_SEARCH_URL": "https://user@api.example.com:8443/s?q={query}",
        "SPANLAB_SEARCH_KEY_HEADER": "X-Subscription-Token",
        "SPANLAB_SEARCH_FIELDS": "results = data.items, text=body",
    }
    endpoint = SearchEndpoint.read(environment)
    assert (endpoint.host, endpoint.header) == ("api.example.com:8443", "X-Subscription-Token")
    assert endpoint.shape == ResultShape(results="data.items", text="body")
    assert SearchEndpoint.read(environment, url="https://b.example").host == "b.example"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        pytest.param({}, "no search API is named: set SPANLAB_SEARCH_URL", id="none"),
        pytest.param(
            {"SPANLAB_SEARCH_URL": "api"}, "SPANLAB_SEARCH_URL is not an address", id="bad"
        ),
        pytest.param(
            {"SPANLAB_SEARCH_URL": "https://a.example", "SPANLAB_SEARCH_FIELDS": "body=x"},
            "SPANLAB_SEARCH_FIELDS wants results, text, title, url, date",
            id="fields",
        ),
    ],
)
def test_a_wrong_environment_is_said_to_be(environment: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SearchEndpoint.read(environment)


def test_a_specification_leads_to_it(model_server: ModelServer, tmp_path: Path) -> None:
    model_server.script(lambda ask: ScriptedReply(body={"items": [{"b": "S"}]}))
    spec = SearchSpec(url=model_server.url, shape=ResultShape(text="b"), k=3)
    assert retriever_spec(json.loads(spec.model_dump_json())) == spec
    settings = Settings(home=tmp_path, database_url="sqlite:///unused.db")
    built = retriever(spec, Meter(), settings)
    assert built.name == f"search:127.0.0.1:{model_server.port}/3"
    assert asyncio.run(ensure(ITEM, built)).passages == (Passage(text="S"),)

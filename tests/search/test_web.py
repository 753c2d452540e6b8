"""Search models over real HTTP: answers and sources become passages, failures reasons."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from model_fixtures import KEY

from spanlab.base.errors import (
    BudgetError,
    MissingKeyError,
    ModelError,
    NoCreditError,
    RefusedError,
    UnavailableError,
    UnparsableAnswerError,
    UsageError,
    WrongKeyError,
)
from spanlab.base.settings import Settings
from spanlab.models import Meter, ModelChoice, TokenPrice
from spanlab.models.cache import answer_file
from spanlab.schema import Item, Passage
from spanlab.schema.usage import Budget
from spanlab.search.base import ensure, retrieve
from spanlab.search.search_model import (
    CitedSource,
    SearchAnswer,
    SearchModelRetriever,
    passages,
    search_choice,
)
from spanlab.search.spec import WebSpec, retriever
from spanlab.testing import ModelServer, ScriptedReply, fail, in_turn, say

ITEM = Item(id="a", lang="en", question="How tall is it?", answer="It is 312 m tall.")
SONAR = say(
    "It is 330 metres tall[1][3].",
    citations=["https://a.example/tower", "https://b.example"],
    search_results=[
        {
            "title": "Tower",
            "url": "https://a.example/tower",
            "date": "2024-05-01",
            "snippet": "The tower is 330 metres tall.",
        },
        {"title": "About", "url": "https://b.example", "date": None},
        {"url": "https://c.example"},
    ],
)


@pytest.fixture
def choice(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelChoice:
    monkeypatch.setenv("SPANLAB_SEARCH_API_KEY", KEY)
    monkeypatch.setenv("SPANLAB_SEARCH_BASE_URL", model_server.url)
    return search_choice()


def test_the_answer_and_its_sources_are_passages(
    model_server: ModelServer, choice: ModelChoice
) -> None:
    model_server.script(lambda ask: SONAR)
    found = asyncio.run(retrieve(ITEM, SearchModelRetriever(choice, Meter(), None)))
    assert found.queries == ("How tall is it?",)
    assert found.passages == (
        Passage(
            text="It is 330 metres tall[1][3].\n\n"
            "[1] Tower https://a.example/tower\n[3] https://c.example",
            title="Answer of sonar-pro",
        ),
        Passage(
            text="The tower is 330 metres tall.",
            title="Tower",
            url="https://a.example/tower",
            date="2024-05-01",
        ),
        Passage(text="About", title="About", url="https://b.example"),
        Passage(text="https://c.example", url="https://c.example"),
    )
    (ask,) = model_server.requests
    assert ask.path == "/v1/chat/completions"
    assert ask.body["model"] == "sonar-pro"
    assert ask.text == "How tall is it?"


def test_citations_alone_and_annotations_are_sources_too(
    model_server: ModelServer, choice: ModelChoice
) -> None:
    noted = {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 2}}
    noted["url_citation"] |= {"url": "https://d.example", "title": "D"}  # type: ignore[operator]
    message = {"role": "assistant", "content": "330 m", "annotations": [noted]}
    annotated = ScriptedReply(
        body={"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    )
    model_server.script(in_turn(say("330 m [1]", citations=["https://a.example"]), annotated))
    asked = SearchModelRetriever(choice, Meter(), None)
    first = asyncio.run(retrieve(ITEM, asked)).passages
    assert first[0].text == "330 m [1]\n\n[1] https://a.example"
    assert first[1].url == "https://a.example"
    second = asyncio.run(retrieve(ITEM, asked)).passages
    assert second[1:] == (Passage(text="D", title="D", url="https://d.example"),)


def test_no_more_sources_than_asked_for_and_marks_without_a_page_stay_bare() -> None:
    sources = tuple(CitedSource(url=f"https://{n}.example", snippet=f"text {n}") for n in range(9))
    kept = passages(SearchAnswer("See [2], [12] and [0].", sources), "sonar", 3)
    assert [passage.text for passage in kept] == [
        "See [2], [12] and [0].\n\n[2] https://1.example",
        "text 0",
        "text 1",
        "text 2",
    ]


def test_what_was_fetched_is_not_fetched_again(
    model_server: ModelServer, choice: ModelChoice, tmp_path: Path
) -> None:
    model_server.script(lambda ask: SONAR)
    first = asyncio.run(
        retrieve(ITEM, SearchModelRetriever(choice, Meter(), answer_file(tmp_path)))
    )
    meter = Meter()
    again = asyncio.run(
        retrieve(ITEM, SearchModelRetriever(choice, meter, answer_file(tmp_path)))
    )  # as another process would
    assert again == first
    assert (model_server.count, meter.usage.calls) == (1, 0)
    other = ITEM.model_copy(update={"question": "How old is it?"})
    asyncio.run(retrieve(other, SearchModelRetriever(choice, meter, answer_file(tmp_path))))
    assert model_server.count == 2


def test_half_an_emoji_is_kept_like_any_answer(
    model_server: ModelServer, choice: ModelChoice, tmp_path: Path
) -> None:
    """JSON allows half of a surrogate pair; nothing that is stored does."""
    body = b'{"choices": [{"index": 0, "finish_reason": "stop", "message":'
    body += b' {"role": "assistant", "content": "330 m \\ud83d"}}], "citations": ["\\udc00"]}'
    model_server.script(lambda ask: ScriptedReply(body=body))
    for _ in range(2):
        found = asyncio.run(
            retrieve(ITEM, SearchModelRetriever(choice, Meter(), answer_file(tmp_path)))
        )
        assert [passage.text for passage in found.passages] == ["330 m \ufffd", "\ufffd"]
    assert model_server.count == 1


def test_calls_and_cost_are_counted_and_a_budget_stops_them(
    model_server: ModelServer, choice: ModelChoice
) -> None:
    stated = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
    model_server.script(
        in_turn(
            say("330 m", usage=stated),
            say("330 m", usage=stated | {"cost": {"total_cost": 0.006}}),
        )
    )
    priced = choice.model_copy(update={"price": TokenPrice(input=3, cached=3, output=15)})
    meter = Meter(Budget(calls=2))
    asked = SearchModelRetriever(priced, meter, None)
    asyncio.run(retrieve(ITEM, asked))
    # 10 × 3 $ + 20 × 15 $ per million tokens
    assert meter.usage.cost == pytest.approx(0.00033)
    asyncio.run(retrieve(ITEM, asked))
    assert meter.usage.cost == pytest.approx(0.00633)
    assert (meter.usage.calls, meter.usage.input_tokens, meter.usage.output_tokens) == (2, 20, 40)
    with pytest.raises(BudgetError, match="2 calls"):
        asyncio.run(retrieve(ITEM, asked))
    assert model_server.count == 2
    with pytest.raises(UsageError, match="SPANLAB_PRICE_SEARCH"):
        SearchModelRetriever(choice, Meter(Budget(cost=1.0)), None)


@pytest.mark.parametrize(
    ("reply", "error", "message", "calls"),
    [
        pytest.param(
            fail(401, f"bad key {KEY}"), WrongKeyError, "SPANLAB_SEARCH_API_KEY", 1, id="key"
        ),
        pytest.param(fail(402), NoCreditError, "credits exhausted", 1, id="no credit"),
        pytest.param(
            fail(429, "quota", code="insufficient_quota"), NoCreditError, "credits", 1, id="quota"
        ),
        pytest.param(fail(429, retry_after=0), UnavailableError, "rate limit", 3, id="rate limit"),
        pytest.param(
            fail(429, retry_after=3600), UnavailableError, "wait 3600 s", 1, id="too long"
        ),
        pytest.param(fail(500), UnavailableError, "status 500", 3, id="server"),
        pytest.param(fail(404), ModelError, "check SPANLAB_SEARCH_MODEL and", 1, id="no model"),
        pytest.param(ScriptedReply(drop=True), UnavailableError, "no connection", 3, id="dropped"),
        pytest.param(
            ScriptedReply(hang=True), UnavailableError, "no answer within", 3, id="timeout"
        ),
        pytest.param(say(""), UnparsableAnswerError, "empty", 1, id="empty"),
        pytest.param(
            ScriptedReply(body={"x": 1}), UnparsableAnswerError, "not a chat", 1, id="other JSON"
        ),
        pytest.param(
            ScriptedReply(body=b"<html>"), UnparsableAnswerError, "not a chat", 1, id="no JSON"
        ),
        pytest.param(say(None, refusal="no"), RefusedError, "refused to answer", 1, id="refused"),
    ],
)
def test_every_failure_is_a_reason_and_nothing_is_kept(
    model_server: ModelServer,
    choice: ModelChoice,
    tmp_path: Path,
    *,
    reply: ScriptedReply,
    error: type[Exception],
    message: str,
    calls: int,
) -> None:
    """Exhausted credits are said as such; a key is never quoted."""
    model_server.script(lambda ask: reply)
    # Waiting for a reply that never comes is the test where it hangs; elsewhere it must not end.
    limit = 0.5 if reply.hang else 60.0
    quick = choice.model_copy(update={"retries": 2, "timeout": limit})
    asked = SearchModelRetriever(quick, Meter(), answer_file(tmp_path))
    with pytest.raises(error, match=message) as caught:
        asyncio.run(ensure(ITEM, asked))
    assert KEY not in str(caught.value) + repr(caught.value.__cause__) + repr(asked)
    assert model_server.count == calls

    model_server.script(lambda ask: SONAR)
    item = asyncio.run(
        ensure(ITEM, SearchModelRetriever(choice, Meter(), answer_file(tmp_path)))
    )  # a later run asks again
    assert len(item.passages) == 4


def test_a_passing_failure_is_tried_again(model_server: ModelServer, choice: ModelChoice) -> None:
    model_server.script(in_turn(fail(503), fail(429, retry_after=0), SONAR))
    meter = Meter()
    found = asyncio.run(retrieve(ITEM, SearchModelRetriever(choice, meter, None)))
    assert len(found.passages) == 4
    assert (model_server.count, meter.usage.calls) == (3, 1)


def test_a_missing_key_is_said_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "BASE_URL", "MODEL"):
        monkeypatch.delenv(f"SPANLAB_SEARCH_{name}", raising=False)
    assert search_choice({}).model == "sonar-pro"
    with pytest.raises(MissingKeyError, match=r"api\.perplexity\.ai: set SPANLAB_SEARCH_API_KEY"):
        SearchModelRetriever(search_choice({}), Meter(), None)
    with pytest.raises(UsageError, match="SPANLAB_SEARCH_BASE_URL"):
        search_choice({"SPANLAB_SEARCH_BASE_URL": "ftp://x"})


def test_a_specification_leads_to_it(
    model_server: ModelServer, choice: ModelChoice, tmp_path: Path
) -> None:
    model_server.script(lambda ask: SONAR)
    settings = Settings(home=tmp_path, database_url="sqlite:///unused.db")
    built = retriever(WebSpec(k=1), Meter(), settings)
    assert built.name == "web:sonar-pro/1"
    item = asyncio.run(ensure(ITEM, built))
    assert len(item.passages) == 2
    assert (tmp_path / "cache" / "retrieval").is_dir()

"""When a passage was published, and what a query with a day therefore leaves out."""

from __future__ import annotations

import asyncio
import json
from datetime import date
from pathlib import Path

import pytest
from model_fixtures import KEY

from spanlab.models import Meter
from spanlab.models.cache import answer_file
from spanlab.schema import Item
from spanlab.search.base import SearchQuery, ensure, retrieval_of
from spanlab.search.endpoint import SearchEndpoint
from spanlab.search.index import build
from spanlab.search.local_search import bm25
from spanlab.search.results import latest_day
from spanlab.search.search import SearchApi
from spanlab.search.search_model import SearchModelRetriever, search_choice
from spanlab.testing import ModelServer, ScriptedReply, say

ITEM = Item(id="a", lang="en", question="How tall is it?", answer="312 m")
MAY = SearchQuery("tower height", language="en", k=2, before=date(2024, 5, 1))
DATES = ["2024-05-01", "2024-04-30T23:59:59Z", None, "3 days ago", "2023", "Apr 3, 2024", "2024"]
EARLIER = ["2024-04-30T23:59:59Z", None]  # the first two that may be read before May


@pytest.mark.parametrize(
    ("text", "day"),
    [
        pytest.param("2024-05-01", date(2024, 5, 1), id="day"),
        pytest.param("2024-5-1", date(2024, 5, 1), id="one digit"),
        pytest.param("2024-05-01T10:00:00+02:00", date(2024, 5, 1), id="time"),
        pytest.param("2024-02", date(2024, 2, 29), id="month counts by its last day"),
        pytest.param(" 2024 ", date(2024, 12, 31), id="year counts by its last day"),
        pytest.param("1 May 2024", date(2024, 5, 1), id="day first"),
        pytest.param("Wed, 01 May 2024 10:00:00 GMT", date(2024, 5, 1), id="mail"),
        pytest.param("May 1st, 2024", date(2024, 5, 1), id="month first"),
        pytest.param("Sept. 2024", date(2024, 9, 30), id="month in letters"),
        pytest.param("2024-02-30", None, id="no such day"),
        pytest.param("0000", None, id="no such year"),
        pytest.param("05/01/2024", None, id="another day in other countries"),
        pytest.param("2024/05/01", None, id="slashes"),
        pytest.param("3 days ago", None, id="relative"),
        pytest.param("Version 2024", None, id="no month"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_stated_date_is_read_as_the_last_day_it_may_mean(text: str, day: date | None) -> None:
    assert latest_day(text) == day


def test_a_corpus_gives_what_is_old_enough_and_as_much_of_it_as_asked_for(tmp_path: Path) -> None:
    lines = [{"text": "tower height " * (9 - n), "date": day} for n, day in enumerate(DATES)]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    build(corpus, tmp_path / "index")
    searched = bm25(tmp_path / "index")
    item = asyncio.run(ensure(ITEM, searched, MAY))
    assert len(item.passages) == 2
    assert {"2024-05-01", "2024"}.isdisjoint(passage.date for passage in item.passages)
    noted = retrieval_of(item, searched, MAY)
    assert noted is not None
    assert (noted.k, noted.before) == (2, date(2024, 5, 1))


def test_a_search_api_is_told_the_day_and_what_it_still_sends_is_left_out(
    model_server: ModelServer, tmp_path: Path
) -> None:
    results = [{"text": f"text {n}", "date": day} for n, day in enumerate(DATES)]
    model_server.script(lambda ask: ScriptedReply(body={"results": results}))
    endpoint = SearchEndpoint(f"{model_server.url}/s?q={{query}}&n={{k}}&until={{before}}")
    asked = SearchApi(endpoint, answer_file(tmp_path))
    item = asyncio.run(ensure(ITEM, asked, MAY))
    assert [passage.date for passage in item.passages] == EARLIER
    every = asyncio.run(ensure(ITEM, asked, SearchQuery(MAY.text)))
    assert len(every.passages) == 5
    assert [ask.path for ask in model_server.requests] == [
        "/v1/s?q=tower%20height&n=10&until=2024-05-01",
        "/v1/s?q=tower%20height&n=10&until=",
    ], "what was found for one day is not taken for another's"


def test_what_a_search_model_says_today_is_no_evidence_of_an_earlier_day(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_SEARCH_API_KEY", KEY)
    monkeypatch.setenv("SPANLAB_SEARCH_BASE_URL", model_server.url)
    results = [{"snippet": f"text {n}", "date": day} for n, day in enumerate(DATES)]
    model_server.script(lambda ask: say("It is 330 m tall.", search_results=results))
    asked = SearchModelRetriever(search_choice(), Meter(), None)
    item = asyncio.run(ensure(ITEM, asked, MAY))
    assert [passage.date for passage in item.passages] == EARLIER
    assert model_server.requests[0].body["search_before_date_filter"] == "05/01/2024"
    asyncio.run(ensure(ITEM, asked))
    assert "search_before_date_filter" not in model_server.requests[1].body

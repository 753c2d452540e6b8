"""The services that find papers, each asked in its own form over real HTTP."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from spanlab.base.errors import ModelError
from spanlab.schema import Passage
from spanlab.search.base import SearchQuery
from spanlab.search.endpoint import SearchEndpoint
from spanlab.search.provider import ProviderName
from spanlab.search.providers import PAPERS
from spanlab.search.search import SearchApi
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply

MAY = SearchQuery("tower\nheight", language="de", before=date(2024, 5, 1))
ARXIV = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>q</title><entry>
<id>http://arxiv.org/abs/1</id><title>On
 towers</title><summary> A tower is 330 m &amp; iron. </summary>
<published>2024-04-01T00:00:00Z</published></entry><entry><id>http://arxiv.org/abs/2</id>
<title>Late</title><summary>L</summary><published>2024-06-01T00:00:00Z</published></entry></feed>"""
PUBMED = """<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD" "https://dtd.nlm.nih.gov/pubmed.dtd">
<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>7</PMID><Article><Journal><JournalIssue>
<PubDate><Year>2024</Year><Month>Apr</Month></PubDate></JournalIssue></Journal>
<ArticleTitle>On <i>towers</i></ArticleTitle><Abstract><AbstractText Label="AIM">A tower.
</AbstractText><AbstractText>It is 330 m.</AbstractText></Abstract></Article></MedlineCitation>
</PubmedArticle></PubmedArticleSet>"""


class Case(NamedTuple):
    """What a service answers, by the path's end; what it is sent first; what is found."""

    answers: dict[str, Any]
    sent: dict[str, str]
    found: Passage


CASES: dict[ProviderName, Case] = {
    "arxiv": Case(
        {"find": ARXIV},
        {"search_query": "tower height", "max_results": "10"},
        Passage(
            text="A tower is 330 m & iron.",
            title="On towers",
            url="http://arxiv.org/abs/1",
            date="2024-04-01T00:00:00Z",
        ),
    ),
    "pubmed": Case(
        {"find": {"esearchresult": {"idlist": ["7"]}}, "efetch.fcgi": PUBMED},
        {
            "term": "tower height",
            "retmax": "10",
            "db": "pubmed",
            "retmode": "json",
            "sort": "relevance",
            "datetype": "pdat",
            "mindate": "1800",
            "maxdate": "2024/04/30",
        },
        Passage(
            text="A tower.\n\nIt is 330 m.",
            title="On towers",
            url="https://pubmed.ncbi.nlm.nih.gov/7/",
            date="Apr 2024",
        ),
    ),
    "semantic-scholar": Case(
        {
            "find": {
                "total": 2,
                "data": [
                    {"title": "No abstract", "abstract": None, "url": "u"},
                    {
                        "title": "On towers",
                        "abstract": "330 m",
                        "url": "https://a.example",
                        "publicationDate": "2024-04-01",
                    },
                ],
            }
        },
        {
            "query": "tower height",
            "limit": "10",
            "fields": "title,abstract,url,publicationDate",
            "publicationDateOrYear": ":2024-04-30",
        },
        Passage(text="330 m", title="On towers", url="https://a.example", date="2024-04-01"),
    ),
}
NOTHING: dict[ProviderName, object] = {
    "arxiv": '<feed xmlns="http://www.w3.org/2005/Atom"/>',
    "pubmed": {"esearchresult": {"count": "0", "idlist": []}},
    "semantic-scholar": {"total": 0, "offset": 0},
}


def search(name: ProviderName, server: ModelServer, answers: dict[str, Any]) -> tuple[Passage, ...]:
    def answer(ask: ModelRequest) -> ScriptedReply:
        body = answers[urlsplit(ask.path).path.rpartition("/")[2]]
        return ScriptedReply(body=body.encode() if isinstance(body, str) else body)

    server.script(answer)
    endpoint = SearchEndpoint.of(name, {PAPERS[name].variable: f"{server.url}/find"})
    return asyncio.run(SearchApi(endpoint, None, name=name).search(MAY)).passages


@pytest.mark.parametrize("name", PAPERS)
def test_papers_are_found_by_their_abstracts(name: ProviderName, model_server: ModelServer) -> None:
    case = CASES[name]
    assert search(name, model_server, case.answers) == (case.found,)
    first, *then = model_server.requests
    assert dict(parse_qsl(urlsplit(first.path).query)) == case.sent
    asked = [dict(parse_qsl(urlsplit(ask.path).query)) for ask in then]
    assert asked == [{"db": "pubmed", "retmode": "xml", "id": "7"}] * (name == "pubmed")


@pytest.mark.parametrize("name", PAPERS)
def test_no_paper_and_no_answer_are_two_things(
    name: ProviderName, model_server: ModelServer
) -> None:
    assert search(name, model_server, {"find": NOTHING[name]}) == ()
    with pytest.raises(ModelError, match="sent no"):
        search(name, model_server, {"find": "<p>We are down.<br>"})

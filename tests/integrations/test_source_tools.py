"""Sources of evidence as tools, asked by the SDK's client and over streamable HTTP by ours."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import uvicorn
from mcp import Client

from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.integrations.mcp_server import mcp_server
from spanlab.search.index import build
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply
from spanlab.tools import Toolbox
from spanlab.tools.mcp_servers import server_states
from spanlab.tools.toolbox import ToolServer

TEXT = """The tower is iron.

== History ==
It was finished in 1889.
=== Lift ===
It has a lift.

== Height ==
It is 330 m high."""
BOX = """<p>x</p><table class="infobox vcard"><tr><th colspan=2>Tower</th></tr><tr class="a">
<th>Height</th><td>330&nbsp;m<table><tr><td>nested</td></tr></table></td></tr></table>
<table><tr><th>Other</th><td>table</td></tr></table>"""
HIT = {"title": "Tower", "snippet": "A <b>tower</b>", "timestamp": "2024-04-01T00:00:00Z"}


def wiki(ask: ModelRequest) -> ScriptedReply:
    """Answer as MediaWiki's API does; "Big Tower" redirects to "Tower"."""
    asked = {name: each for name, (each, *_) in parse_qs(urlsplit(ask.path).query).items()}
    if asked.get("list") == "search":
        return ScriptedReply(body={"batchcomplete": True, "query": {"search": [HIT]}})
    if asked.get("titles", asked.get("page")) not in {"Tower", "Big Tower"}:
        gone = {"query": {"pages": [{"title": "X", "missing": True}]}, "batchcomplete": True}
        return ScriptedReply(
            body=gone if "titles" in asked else {"error": {"code": "missingtitle"}}
        )
    if asked["action"] == "parse":
        return ScriptedReply(body={"parse": {"title": "Tower", "text": BOX}})
    page = {
        "title": "Tower",
        "extract": TEXT,
        "fullurl": "https://de.wikipedia.org/wiki/Tower",
        "revisions": [{"timestamp": "2024-04-01T00:00:00Z"}],
    }
    return ScriptedReply(body={"batchcomplete": True, "query": {"pages": [page]}})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Settings, in an environment where Wikipedia is on this machine."""
    with ModelServer(wiki) as server:
        monkeypatch.setenv("SPANLAB_WIKIPEDIA_URL", f"{server.url}/{{language}}/api.php")
        yield Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")


CALLS = [
    pytest.param("search_wikipedia", {"query": "iron"}, "A tower", id="search"),
    pytest.param("wikipedia_summary", {"title": "Big Tower"}, "The tower is iron.", id="summary"),
    pytest.param("wikipedia_article", {"title": "Tower"}, TEXT, id="article"),
    pytest.param(
        "wikipedia_sections", {"title": "Tower"}, "History\n  Lift\nHeight", id="headings"
    ),
    pytest.param(
        "wikipedia_section",
        {"title": "Tower", "section": "history"},
        "== History ==\nIt was finished in 1889.\n=== Lift ===\nIt has a lift.",
        id="section",
    ),
    pytest.param(
        "wikipedia_section",
        {"title": "Tower", "section": "Roof"},
        "'Tower' has no section 'Roof'; available: History, Lift, Height",
        id="no-such-section",
    ),
    pytest.param("wikipedia_related", {"title": "Tower"}, "A tower", id="related"),
    pytest.param("wikipedia_facts", {"title": "Tower"}, "Height: 330 m", id="facts"),
    pytest.param("wikipedia_facts", {"title": "Gone"}, "no article is called 'Gone'", id="gone"),
    pytest.param("wikipedia_summary", {"title": "Gone"}, "search for its title", id="no-article"),
    pytest.param("search_wikipedia", {"query": "x", "before": "May"}, "isoformat", id="no-day"),
]


@pytest.mark.parametrize(("tool", "arguments", "said"), CALLS)
def test_an_article_is_read_whole_and_by_its_parts(
    tool: str, arguments: dict[str, str], said: str, here: Settings
) -> None:
    async def run() -> None:
        async with Client(mcp_server(None, ["wikipedia"], here)) as client:
            found = await client.call_tool(tool, arguments | {"language": "de"})
        if found.is_error:
            assert said in str(found.content)
            return
        assert found.structured_content is not None
        (passage,) = found.structured_content["result"]
        assert passage["text"] == said
        assert passage["title"] == "Tower"

    asyncio.run(run())


@asynccontextmanager
async def over_http(app: Any) -> AsyncIterator[str]:
    """Serve an application on a free port of this machine, until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        free.listen(64)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [free]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await asyncio.to_thread(thread.join)


def test_an_argument_that_a_tool_does_not_take_is_refused(here: Settings) -> None:
    async def ask(name: str, arguments: dict[str, Any]) -> str:
        async with Client(mcp_server(None, ["wikipedia"], here)) as client:
            told = await client.call_tool(name, arguments)
            assert told.is_error == ("language" not in arguments)
            return str(told.content[0].text)  # type: ignore[union-attr]

    asked = {"title": "Tower", "lang": "de"}
    assert asyncio.run(ask("wikipedia_summary", asked)) == (
        "wikipedia_summary takes no lang; it takes title, language"
    )
    assert asyncio.run(ask("no_such_tool", asked)) == "Unknown tool: no_such_tool"
    assert asyncio.run(ask("wikipedia_summary", {})) == "title: it is missing"
    assert asyncio.run(ask("wikipedia_summary", {"title": 1})) == "title: it should be a text"
    null = {"title": "Tower", "language": None}  # as programs send what is left open
    assert "The tower is iron." in asyncio.run(ask("wikipedia_summary", null))


def test_a_corpus_and_papers_are_searched_over_http_with_what_the_item_says(
    here: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    rows = [
        {
            "text": "The tower is of iron.",
            "title": "Old",
            "date": "2020-01-01",
            "url": "https://a/",
        },
        {"text": "The tower is of steel.", "title": "New", "date": "2024-01-01"},
    ]
    corpus.write_text("\n".join(map(json.dumps, rows)))
    build(corpus, tmp_path / "index")
    app = mcp_server(None, ["corpus", "papers"], here, tmp_path / "index").streamable_http_app()

    async def run() -> None:
        async with over_http(app) as url:
            server = ToolServer(url=url, tools=("search_passages",), key="MCP_TEST_KEY")
            (state,) = await server_states({"mine": server})
            (tool,) = state.tools
            box = Toolbox(state.tools)
            assert "before: string (optional)" in box.described()
            old, new = await box.call("mine.search_passages", {"query": "tower"})
            assert {old.title, new.title} == {"Old", "New"}
            only = await box.call(
                "mine.search_passages", {"query": "tower", "before": "2021-01-01"}
            )
            assert [(each.title, each.url, each.date) for each in only] == [
                ("Old", "https://a/", "2020-01-01")
            ]
            assert tool.kind == "tool"

    monkeypatch.setenv("MCP_TEST_KEY", "sk-key-of-the-mcp-test")
    asyncio.run(run())


def test_what_is_missing_for_a_source_is_said(here: Settings) -> None:
    for name in ("corpus", "nonsense"):
        with pytest.raises(UsageError, match=r"no corpus is named|no source named"):
            mcp_server(None, [name], here)

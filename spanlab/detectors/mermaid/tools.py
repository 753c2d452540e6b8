"""The tools that every claim has: a search, and the pages that it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from pydantic import JsonValue

from spanlab.detectors.base import Kit
from spanlab.detectors.common.context import ranked
from spanlab.detectors.common.evidence import GIVEN
from spanlab.detectors.common.model_detector import Case
from spanlab.errors import ToolError
from spanlab.retrievers import Given, Query
from spanlab.schema import Passage
from spanlab.tools import Tool

HITS = 5  # passages that a search gives
SEARCH = "search"
PAGE = "read_page"


def own_tools(kit: Kit, case: Case, before: date | None) -> list[Tool]:
    """Return the search of a run, over the item's passages if it has none, and its pages.

    Args:
        kit: with the retriever and the pages.
        case: the item, whose passages name the addresses that may be read.
        before: the day before which evidence must be published; None for any.
    """
    given = tuple(case.item.passages) if isinstance(kit.retriever, Given) else None

    async def search(arguments: Mapping[str, JsonValue]) -> Sequence[Passage]:
        text = " ".join(str(arguments["query"]).split())
        if given is not None:
            best = ranked([passage.text for passage in given], text)
            return [given[index] for index in best[:HITS]]
        query = Query(text, language=case.item.lang, k=HITS, before=before, item=case.item.id)
        found = await kit.retriever.search(query)
        return [passage for passage in found.passages if query.admits(passage)][:HITS]

    async def read(arguments: Mapping[str, JsonValue]) -> Sequence[Passage]:
        url = str(arguments["url"]).strip()
        known = next((each for each in case.item.passages if each.url == url), None)
        if known is None or kit.pages is None:
            raise ToolError(f"no search has found {url[:200]!r}: only what was found can be read")
        page = await kit.pages.read(url)
        title, day = known.title or page.title, known.date or page.date
        return [Passage(text=page.text, title=title, url=url, date=day)]

    where = "the passages that came with the answer" if given is not None else "the sources"
    tools = [
        Tool(
            SEARCH,
            f"Search {where}; gives up to {HITS} passages.",
            {"query": {"type": "string"}},
            search,
            ("query",),
            source=kit.retriever.name,
            kind="search" if given is None else GIVEN,
        )
    ]
    if kit.pages is not None and given is None:
        about = "Read the whole page at an address that a search has found."
        tools.append(
            Tool(
                PAGE,
                about,
                {"url": {"type": "string"}},
                read,
                ("url",),
                source="pages",
                kind="page",
            )
        )
    return tools

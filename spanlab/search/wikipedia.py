"""Articles of Wikipedia, or of another MediaWiki: whole, by their parts, and what is like them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from spanlab.base.errors import PageError
from spanlab.base.settings import Settings
from spanlab.models import answer_cache
from spanlab.schema import Passage
from spanlab.search.base import SearchQuery
from spanlab.search.endpoint import SearchEndpoint
from spanlab.search.html import read_html
from spanlab.search.provider import SearchService
from spanlab.search.providers import PROVIDERS
from spanlab.search.results import ResultShape
from spanlab.search.search import SearchApi

_SEARCH: Final = PROVIDERS["wikipedia"]
_ARTICLE: Final = replace(
    _SEARCH,
    query="titles",
    number="",
    fixed={
        "action": "query",
        "prop": "extracts|info|revisions",
        "explaintext": "1",
        "exsectionformat": "wiki",
        "inprop": "url",
        "rvprop": "timestamp",
        "redirects": "1",
        "format": "json",
        "formatversion": "2",
    },
    shape=ResultShape(
        results="query.pages",
        text="extract",
        title="title",
        url="fullurl",
        date="revisions.0.timestamp",
    ),
    markup=False,
    link="",
    sign="batchcomplete",
)
_FACTS: Final = replace(
    _ARTICLE,
    query="page",
    fixed={
        "action": "parse",
        "prop": "text",
        "section": "0",
        "redirects": "1",
        "format": "json",
        "formatversion": "2",
    },
    shape=ResultShape(results="parse", text="text", title="title"),
    sign="error",
)
_HEADING: Final = re.compile(r"^(={2,6}) *(.+?) *\1$", re.MULTILINE)
_BOX: Final = re.compile(r"<table\b[^>]*\binfobox\b")
_TABLE: Final = re.compile(r"<(/?)table\b")
_ROW: Final = re.compile(r"<tr\b[^>]*>")


class Wikipedia:
    """Reads articles; a title that redirects gives the article that it leads to.

    Args:
        settings: what was read is kept below ``settings.home``.

    Raises:
        UsageError: the address in the environment is none.
        StoreError: the cache cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        endpoint, cache = SearchEndpoint.of("wikipedia"), answer_cache(settings, "retrieval")

        def search_api(provider: SearchService) -> SearchApi:
            article_endpoint = replace(endpoint, provider=provider, shape=provider.shape)
            return SearchApi(article_endpoint, cache, name="wikipedia")

        self._search, self._article, self._facts = map(search_api, (_SEARCH, _ARTICLE, _FACTS))

    async def related(self, title: str, language: str) -> tuple[Passage, ...]:
        """Return the articles that are most like one, with a part of each."""
        return (await self._search.search(SearchQuery(f"morelike:{title}", language))).passages

    async def article(self, title: str, language: str) -> Passage:
        """Return an article with its headings, such as ``== History ==``.

        Raises:
            PageError: there is none.
        """
        return _only((await self._article.search(SearchQuery(title, language))).passages, title)

    async def summary(self, title: str, language: str) -> Passage:
        """Return what an article says before its first heading; raises as ``article`` does."""
        article = await self.article(title, language)
        return _with(article, _HEADING.split(article.text, maxsplit=1)[0])

    async def sections(self, title: str, language: str) -> Passage:
        """Return an article's headings, one a line, indented by level; raises as ``article``."""
        article = await self.article(title, language)
        headings = (f"{'  ' * (len(at[1]) - 2)}{at[2]}" for at in _HEADING.finditer(article.text))
        return _with(article, "\n".join(headings) or "It has no sections.")

    async def section(self, title: str, section: str, language: str) -> Passage:
        """Return one section of an article, with those inside it.

        Raises:
            PageError: there is no such article, or no such section; says which there are.
        """
        article = await self.article(title, language)
        headings = list(_HEADING.finditer(article.text))
        name = section.strip().casefold()
        begin = next((heading for heading in headings if heading[2].casefold() == name), None)
        if begin is None:
            names = ", ".join(heading[2] for heading in headings) or "none"
            raise PageError(
                f"{article.title!r} has no section {section[:100]!r}; available: {names}"
            )
        later = headings[headings.index(begin) + 1 :]
        end = next((heading.start() for heading in later if len(heading[1]) <= len(begin[1])), None)
        return _with(article, article.text[begin.start() : end])

    async def facts(self, title: str, language: str) -> Passage:
        """Return the rows of an article's infobox, each as ``name: value``.

        Raises:
            PageError: there is no such article, or it has no infobox.
        """
        facts = _only((await self._facts.search(SearchQuery(title, language))).passages, title)
        rows = _rows(facts.text)
        if not rows:
            raise PageError(f"{facts.title!r} has no infobox: read its summary")
        return _with(facts, "\n".join(rows))


def _only(passages: tuple[Passage, ...], title: str) -> Passage:
    if not passages:
        raise PageError(f"no article is called {title[:100]!r}: search for its title")
    return passages[0]


def _with(passage: Passage, text: str) -> Passage:
    return passage.model_copy(update={"text": text.strip()})


def _rows(markup: str) -> list[str]:
    """Return the rows of the first infobox that have a name and a value."""
    begin = _BOX.search(markup)
    if begin is None:
        return []
    depth, end = 1, len(markup)
    for mark in _TABLE.finditer(markup, begin.end()):
        depth += -1 if mark[1] else 1
        if not depth:
            end = mark.start()
            break
    rows = []
    for row in _ROW.split(markup[begin.start() : end]):
        name, _, value = (_plain(part) for part in row.partition("</th>"))
        if name and value:
            rows.append(f"{name}: {value}")
    return rows


def _plain(markup: str) -> str:
    return " ".join(read_html(markup.encode(), "utf-8").text.split())

"""Sources of evidence as tools of an MCP server: Wikipedia, search services, papers, a corpus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from spanlab.errors import ConfigurationError, SpanlabError, UsageError
from spanlab.lm import Meter
from spanlab.redaction import redact
from spanlab.retrievers import (
    Bm25Spec,
    Retriever,
    RetrieverSpec,
    SearchQuery,
    SearchSpec,
    WebSpec,
    retriever,
)
from spanlab.retrievers.base import PER_SEARCH
from spanlab.retrievers.papers import PAPERS
from spanlab.retrievers.provider import ProviderName, SearchService
from spanlab.retrievers.providers import WEB
from spanlab.retrievers.wikipedia import Wikipedia
from spanlab.schema import UNDETERMINED, Passage
from spanlab.settings import Settings
from spanlab.tools.base import LONGEST

_MOST: Final = 20  # passages of a search

Server = MCPServer[Any]
Shown = list[dict[str, Any]]
Named = Mapping[str, tuple[str, RetrieverSpec]]  # what is searched, by the tool's name


def add_sources(
    server: Server, names: Iterable[str], settings: Settings, corpus: Path | None = None
) -> None:
    """Add the tools of some sources to a server.

    Args:
        server: the server.
        names: which sources.
        settings: what was fetched is kept below ``settings.home``.
        corpus: the index that is searched as ``corpus``.

    Raises:
        UsageError: something that a source needs is missing.
        InputError: the index cannot be used.
    """
    for name in names:
        if name not in _ADD:
            raise UsageError(f"no source is called {name!r} (there are: {', '.join(_ADD)})")
        _ADD[name](server, settings, corpus)


@contextmanager
def refusals() -> Iterator[None]:
    """Tell errors of ours to whoever has called a tool, without keys."""
    try:
        yield
    except (SpanlabError, ValueError) as error:
        raise ToolError(redact(str(error))) from None


def shown(passages: Iterable[Passage]) -> Shown:
    """Return passages as the JSON Lines of spanlab have them."""
    cut = (each.model_copy(update={"text": each.text[:LONGEST]}) for each in passages)
    return [each.model_dump(mode="json", exclude_defaults=True) for each in cut]


def _wikipedia(server: Server, settings: Settings, _corpus: Path | None) -> None:
    wiki = Wikipedia(settings)
    _add_searches(server, settings, {"wikipedia": ("Wikipedia", SearchSpec(provider="wikipedia"))})

    async def section(title: str, section: str, language: str = "") -> Shown:
        """Read one section of a Wikipedia article, by its heading."""
        with refusals():
            return shown([await wiki.section(title, section, language or UNDETERMINED)])

    async def related(title: str, language: str = "") -> Shown:
        """List Wikipedia articles on related topics, with a sentence of each."""
        with refusals():
            return shown(await wiki.related(title, language or UNDETERMINED))

    server.add_tool(section, "wikipedia_section")
    server.add_tool(related, "wikipedia_related")
    for name, about, read in (
        ("summary", "Read the introduction of a Wikipedia article.", wiki.summary),
        ("article", "Read a whole Wikipedia article.", wiki.article),
        ("sections", "List the headings of a Wikipedia article.", wiki.sections),
        ("facts", "Read the key facts (infobox) of a Wikipedia article.", wiki.facts),
    ):
        server.add_tool(_reading(read), f"wikipedia_{name}", description=about)


def _reading(read: Callable[[str, str], Awaitable[Passage]]) -> Callable[..., Awaitable[Shown]]:
    async def tool(title: str, language: str = "") -> Shown:
        with refusals():
            return shown([await read(title, language or UNDETERMINED)])

    return tool


def _search(server: Server, settings: Settings, _corpus: Path | None) -> None:
    others: Named = {
        "api": ("a search API", SearchSpec()),
        "model": ("the web, with a model that does so,", WebSpec()),
    }
    _add_searches(server, settings, {**_named(WEB), **others})


def _papers(server: Server, settings: Settings, _corpus: Path | None) -> None:
    _add_searches(server, settings, _named(PAPERS))


def _corpus(server: Server, settings: Settings, corpus: Path | None) -> None:
    if corpus is None:
        raise UsageError("no corpus is named: give --corpus, an index of `spanlab index`")
    _add_searches(server, settings, {"passages": ("a corpus", Bm25Spec(corpus=corpus))})


def _named(providers: Mapping[ProviderName, SearchService]) -> Named:
    return {name: (each.title, SearchSpec(provider=name)) for name, each in providers.items()}


def _add_searches(server: Server, settings: Settings, named: Named) -> None:
    """Add a tool for each of some retrievers, as far as they are set up here."""
    missing: list[str] = []
    for name, (title, spec) in named.items():
        try:
            tool = _searching(retriever(spec, Meter(), settings))
        except (UsageError, ConfigurationError) as error:
            missing.append(str(error))
        else:
            called = f"search_{name.replace('-', '_')}"
            server.add_tool(tool, called, description=f"Search {title} for a query.")
    if len(missing) == len(named):
        raise UsageError("; ".join(missing))


def _searching(found: Retriever) -> Callable[..., Awaitable[Shown]]:
    async def tool(query: str, k: int = PER_SEARCH, language: str = "", before: str = "") -> Shown:
        with refusals():
            day = date.fromisoformat(before) if before else None
            asked = SearchQuery(query, language or UNDETERMINED, max(1, min(k, _MOST)), day)
            return shown((await found.search(asked)).passages)

    return tool


_ADD: Final[Mapping[str, Callable[[Server, Settings, Path | None], None]]] = {
    "wikipedia": _wikipedia,
    "search": _search,
    "papers": _papers,
    "corpus": _corpus,
}

"""Detectors, verification, scores and sources as MCP tools."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any, Final

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
)
from pydantic import ValidationError

from spanlab.base.errors import ConfigurationError, SpanlabError, UsageError
from spanlab.base.fields import message_of
from spanlab.base.redaction import redact
from spanlab.base.settings import Settings
from spanlab.integrations.offers import (
    ClaimRequest,
    DetectionReply,
    DetectionRequest,
    ScoreRequest,
    SentPassages,
    ServiceOffers,
    by_our_names,
)
from spanlab.models import Meter
from spanlab.models.meter import reporting
from spanlab.schema import UNDETERMINED, Passage, Span, storable_escapes
from spanlab.search.base import PER_SEARCH, Retriever, SearchQuery
from spanlab.search.provider import ProviderName, SearchService
from spanlab.search.providers import PAPERS, WEB
from spanlab.search.spec import Bm25Spec, RetrieverSpec, SearchSpec, WebSpec, retriever
from spanlab.search.wikipedia import Wikipedia
from spanlab.tools.toolbox import LONGEST

_ABOUT = """Finds the hallucinated spans of an LLM's answer and verifies claims.
Offsets are code points of the answer, the end exclusive; evidence names passages by index."""


class _Server(MCPServer[Any]):
    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; the SDK passes over arguments that it does not take, as a misspelt one."""
        tools = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        given = by_our_names(arguments)
        own = tools.get(name, given)
        if unknown := sorted(set(given) - set(own)):
            raise ToolError(f"{name} takes no {', '.join(unknown)}; it takes {', '.join(own)}")
        try:
            return await super().call_tool(name, given, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise _told(error.__cause__) from None
            raise


def mcp_server(
    offers: ServiceOffers | None,
    sources: Sequence[str] = (),
    settings: Settings | None = None,
    corpus: Path | None = None,
) -> MCPServer[Any]:
    """Return an MCP server; ``serve_stdio`` or its ``streamable_http_app`` makes it listen.

    Args:
        offers: detections, verdicts and scores; None offers none.
        sources: names of the sources whose tools are offered.
        settings: where fetched texts are kept; None reads the environment.
        corpus: the index that the source ``corpus`` searches.

    Raises:
        UsageError: something that a source needs is missing.
        InputError: the index cannot be used.
    """
    server = _Server("spanlab", instructions=_ABOUT, version=version("spanlab"), log_level="ERROR")
    if offers is not None:
        _add_offers(server, offers)
    add_sources(server, sources, settings or Settings.read(), corpus)
    return server


def serve_stdio(server: MCPServer[Any]) -> None:
    """Answer on the standard output what comes on the standard input, until that ends, or Ctrl+C.

    The SDK never answers a line with half an emoji, and waits for a line after Ctrl+C: it reads
    from a pipe that gets all lines without the former, and ends with the latter.
    """
    stdin = os.dup(0)
    read_end, write_end = os.pipe()
    os.dup2(read_end, 0)
    os.close(read_end)
    Thread(target=_copy_lines, args=(stdin, write_end), daemon=True).start()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    signal.signal(signal.SIGINT, lambda *_: os.dup2(nowhere, write_end, inheritable=False))
    try:
        anyio.run(_answer_lines, server)
    except* BrokenPipeError:
        pass  # nobody reads the answers any more


async def _answer_lines(server: MCPServer[Any]) -> None:
    """Serve as the SDK does, but answer the lines, too, that it passes over: no requests."""
    sdk = server._lowlevel_server  # the SDK offers no other way to what it reads
    requests, to_answer = anyio.create_memory_object_stream[SessionMessage | Exception]()
    async with stdio_server() as (lines, replies), anyio.create_task_group() as tasks:

        async def pass_on() -> None:
            async with requests:
                async for line in lines:
                    if not isinstance(line, ValidationError):
                        await requests.send(line)
                    elif (refusal := _refusal(line)) is not None:
                        await replies.send(SessionMessage(refusal))

        tasks.start_soon(pass_on)
        await sdk.run(to_answer, replies, sdk.create_initialization_options())


def _refusal(error: ValidationError) -> JSONRPCError | None:
    """Return the reply to a line that is no request; None for a blank one."""
    problem = error.errors()[0]
    sent = problem["input"]
    if problem["type"] == "json_invalid":
        wrong = ErrorData(code=PARSE_ERROR, message=f"Parse error: {problem['ctx']['error']}")
        return JSONRPCError(jsonrpc="2.0", id=None, error=wrong) if sent.strip() else None
    name = sent.get("id") if isinstance(sent, dict) else None
    wrong = ErrorData(code=INVALID_REQUEST, message="Invalid Request: send JSON-RPC 2.0")
    return JSONRPCError(
        jsonrpc="2.0", id=name if isinstance(name, str | int) else None, error=wrong
    )


def _copy_lines(stdin: int, write_end: int) -> None:
    with os.fdopen(write_end, "wb") as out:
        waiting = bytearray()
        while piece := os.read(stdin, 2**16):
            waiting += piece
            if b"\n" in piece:
                lines, _, waiting = waiting.rpartition(b"\n")
                out.write(storable_escapes(lines.decode(errors="replace")).encode() + b"\n")
                out.flush()


_MARKS = "Find the parts of an answer that {} contradict or do not support."
_JUDGES = "Say whether {} support or refute a claim, with the evidence."
_GIVEN = "the passages given"
_SEARCHED = "the passages given, or what is found by a search,"


def _add_offers(server: MCPServer[Any], offers: ServiceOffers) -> None:
    # Cancellation is the SDK's: a call that is cancelled ends its model calls.
    async def find_hallucinations(
        answer: str,
        context: Context[Any, Any],
        question: str = "",
        passages: SentPassages = (),
        lang: str = UNDETERMINED,
        detector: str | None = None,
    ) -> DetectionReply:
        with tool_errors():
            request = DetectionRequest(
                answer=answer,
                question=question,
                passages=passages,
                lang=lang,
                detector=detector,
            )
            return await _report_progress(context, offers.find(request))

    async def verify_claim(
        claim: str,
        context: Context[Any, Any],
        passages: SentPassages = (),
        lang: str = UNDETERMINED,
        detector: str | None = None,
    ) -> DetectionReply:
        with tool_errors():
            request = ClaimRequest(claim=claim, passages=passages, lang=lang, detector=detector)
            return await _report_progress(context, offers.verify(request))

    def score_spans(
        answer: str, spans: list[dict[str, Any]], gold: list[dict[str, Any]]
    ) -> dict[str, float]:
        """Score predicted spans against gold ones: IoU, Corr and F1 of characters."""
        with tool_errors():
            request = ScoreRequest(
                answer=answer, spans=_spans(answer, spans), gold=_spans(answer, gold)
            )
            return offers.score(request).model_dump()

    passages_read = _SEARCHED if offers.searches else _GIVEN
    server.add_tool(find_hallucinations, description=_MARKS.format(passages_read))
    if offers.judges:
        server.add_tool(verify_claim, description=_JUDGES.format(passages_read))
    server.add_tool(score_spans)


async def _report_progress(
    context: Context[Any, Any], work: Coroutine[Any, Any, DetectionReply]
) -> DetectionReply:
    """Wait for a detection; meanwhile report to the caller how many claims are judged."""
    steps = 0

    async def report(done: int, total: int) -> None:
        nonlocal steps
        steps = total
        await context.report_progress(done, total)

    await context.report_progress(0)
    with reporting(report):
        reply = await work
    if not steps:  # a detector that takes the answer as a whole
        await report(1, 1)
    return reply


def _spans(answer: str, spans: list[dict[str, Any]]) -> tuple[Span, ...]:
    try:
        return tuple(
            Span.of(answer, span["start"], span["end"], prob=span.get("prob", 1.0))
            for span in spans
        )
    except (KeyError, TypeError):
        raise ValueError("a span has a start and an end, as numbers") from None


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
        names: names of the sources.
        settings: fetched texts are kept below ``settings.home``.
        corpus: the index that is searched as ``corpus``.

    Raises:
        UsageError: something that a source needs is missing.
        InputError: the index cannot be used.
    """
    for name in names:
        if name not in _ADD:
            raise UsageError(f"no source named {name!r}; available: {', '.join(_ADD)}")
        _ADD[name](server, settings, corpus)


@contextmanager
def tool_errors() -> Iterator[None]:
    """Turn errors of spanlab into errors of an MCP tool, without keys in the messages."""
    try:
        yield
    except ValidationError as error:
        raise _told(error) from None
    except (SpanlabError, ValueError) as error:
        raise ToolError(redact(str(error))) from None


def _told(error: ValidationError) -> ToolError:
    wrong = (
        f"{'.'.join(map(str, each['loc']))}: {message_of(each)}".removeprefix(": ")
        for each in error.errors(include_url=False)
    )
    return ToolError(redact("; ".join(wrong)))


def as_json(passages: Iterable[Passage]) -> Shown:
    """Return passages as in the JSON Lines of spanlab, texts cut to what a tool may return."""
    cut = (passage.model_copy(update={"text": passage.text[:LONGEST]}) for passage in passages)
    return [passage.model_dump(mode="json", exclude_defaults=True) for passage in cut]


def _add_wikipedia(server: Server, settings: Settings, _corpus: Path | None) -> None:
    wiki = Wikipedia(settings)
    _add_searches(server, settings, {"wikipedia": ("Wikipedia", SearchSpec(provider="wikipedia"))})

    async def section(title: str, section: str, language: str = "") -> Shown:
        """Read one section of a Wikipedia article, by its heading."""
        with tool_errors():
            return as_json([await wiki.section(title, section, language or UNDETERMINED)])

    async def related(title: str, language: str = "") -> Shown:
        """List Wikipedia articles on related topics, with a sentence of each."""
        with tool_errors():
            return as_json(await wiki.related(title, language or UNDETERMINED))

    server.add_tool(section, "wikipedia_section")
    server.add_tool(related, "wikipedia_related")
    for name, about, read in (
        ("summary", "Read the introduction of a Wikipedia article.", wiki.summary),
        ("article", "Read a whole Wikipedia article.", wiki.article),
        ("sections", "List the headings of a Wikipedia article.", wiki.sections),
        ("facts", "Read the key facts (infobox) of a Wikipedia article.", wiki.facts),
    ):
        server.add_tool(_article_tool(read), f"wikipedia_{name}", description=about)


def _article_tool(
    read: Callable[[str, str], Awaitable[Passage]],
) -> Callable[..., Awaitable[Shown]]:
    async def tool(title: str, language: str = "") -> Shown:
        with tool_errors():
            return as_json([await read(title, language or UNDETERMINED)])

    return tool


def _add_web_searches(server: Server, settings: Settings, _corpus: Path | None) -> None:
    apis: Named = {
        "api": ("a search API", SearchSpec()),
        "model": ("the web, with a model that does so,", WebSpec()),
    }
    _add_searches(server, settings, {**_search_specs(WEB), **apis})


def _add_paper_searches(server: Server, settings: Settings, _corpus: Path | None) -> None:
    _add_searches(server, settings, _search_specs(PAPERS))


def _add_corpus(server: Server, settings: Settings, corpus: Path | None) -> None:
    if corpus is None:
        raise UsageError("no corpus is named: give --corpus, an index of `spanlab index`")
    _add_searches(server, settings, {"passages": ("a corpus", Bm25Spec(corpus=corpus))})


def _search_specs(providers: Mapping[ProviderName, SearchService]) -> Named:
    return {
        name: (provider.title, SearchSpec(provider=name)) for name, provider in providers.items()
    }


def _add_searches(server: Server, settings: Settings, named: Named) -> None:
    """Add a search tool for each retriever that is set up here.

    Raises:
        UsageError: none is; says what each one misses.
    """
    missing: list[str] = []
    for name, (title, spec) in named.items():
        try:
            tool = _search_tool(retriever(spec, Meter(), settings))
        except (UsageError, ConfigurationError) as error:
            missing.append(str(error))
        else:
            tool_name = f"search_{name.replace('-', '_')}"
            server.add_tool(tool, tool_name, description=f"Search {title} for a query.")
    if len(missing) == len(named):
        raise UsageError("; ".join(missing))


def _search_tool(source: Retriever) -> Callable[..., Awaitable[Shown]]:
    async def tool(query: str, k: int = PER_SEARCH, language: str = "", before: str = "") -> Shown:
        with tool_errors():
            day = date.fromisoformat(before) if before else None
            search_query = SearchQuery(query, language or UNDETERMINED, max(1, min(k, _MOST)), day)
            return as_json((await source.search(search_query)).passages)

    return tool


_ADD: Final[Mapping[str, Callable[[Server, Settings, Path | None], None]]] = {
    "wikipedia": _add_wikipedia,
    "search": _add_web_searches,
    "papers": _add_paper_searches,
    "corpus": _add_corpus,
}

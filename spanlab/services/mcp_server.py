"""spanlab as an MCP server: what it offers, as tools for assistants, editors and agents."""

from __future__ import annotations

import os
import signal
from collections.abc import Coroutine, Sequence
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

from spanlab.lm.meter import reporting
from spanlab.schema import UNDETERMINED, Passage, Span, storable_escapes
from spanlab.services.offers import (
    ClaimRequest,
    DetectionReply,
    DetectionRequest,
    ScoreRequest,
    ServiceOffers,
)
from spanlab.services.source_tools import add_sources, refusals
from spanlab.settings import Settings

_ABOUT = """Finds the hallucinated spans of an LLM's answer and verifies claims.
Offsets are code points of the answer, the end exclusive; evidence names passages by index."""


def mcp_server(
    offers: ServiceOffers | None,
    sources: Sequence[str] = (),
    settings: Settings | None = None,
    corpus: Path | None = None,
) -> MCPServer[Any]:
    """Return the server; ``serve_stdio`` or its ``streamable_http_app`` makes it listen.

    Args:
        offers: detections, verdicts and scores; None offers none.
        sources: whose tools are offered.
        settings: where what was fetched is kept; None reads the environment.
        corpus: the index that the source ``corpus`` searches.

    Raises:
        UsageError: something that a source needs is missing.
        InputError: the index cannot be used.
    """
    server: MCPServer[Any] = MCPServer(
        "spanlab", instructions=_ABOUT, version=version("spanlab"), log_level="ERROR"
    )
    if offers is not None:
        _add_offers(server, offers)
    add_sources(server, sources, settings or Settings.read(), corpus)
    return server


def serve_stdio(server: MCPServer[Any]) -> None:
    """Answer on the standard output what comes on the standard input, until that ends, or Ctrl+C.

    The SDK never answers a line with half an emoji, and waits for a line after Ctrl+C: it reads
    from a pipe that gets all lines without the former, and ends with the latter.
    """
    given = os.dup(0)
    read_end, write_end = os.pipe()
    os.dup2(read_end, 0)
    os.close(read_end)
    Thread(target=_pass_lines, args=(given, write_end), daemon=True).start()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    signal.signal(signal.SIGINT, lambda *_: os.dup2(nowhere, write_end, inheritable=False))
    try:
        server.run("stdio")
    except* BrokenPipeError:
        pass  # nobody reads the answers any more


def _pass_lines(given: int, write_end: int) -> None:
    with os.fdopen(write_end, "wb") as out:
        waiting = bytearray()
        while piece := os.read(given, 2**16):
            waiting += piece
            if b"\n" in piece:
                lines, _, waiting = waiting.rpartition(b"\n")
                out.write(storable_escapes(lines.decode(errors="replace")).encode() + b"\n")
                out.flush()


_MARKS = "Find the parts of an answer that {} contradict or do not support."
_JUDGES = "Say whether {} support or refute a claim, with the evidence."
_GIVEN = "the passages given"
_SEARCHED = "the passages given, or what is found by a search,"
GivenPassages = list[str | Passage] | None


def _add_offers(server: MCPServer[Any], offers: ServiceOffers) -> None:
    # Cancellation is the SDK's: a call that is cancelled ends its model calls.
    async def find_hallucinations(
        answer: str,
        context: Context[Any, Any],
        question: str = "",
        passages: GivenPassages = None,
        lang: str = UNDETERMINED,
        detector: str | None = None,
    ) -> DetectionReply:
        with refusals():
            asked = DetectionRequest(
                answer=answer,
                question=question,
                passages=_passages(passages),
                lang=lang,
                detector=detector,
            )
            return await _told(context, offers.find(asked))

    async def verify_claim(
        claim: str,
        context: Context[Any, Any],
        passages: GivenPassages = None,
        lang: str = UNDETERMINED,
        detector: str | None = None,
    ) -> DetectionReply:
        with refusals():
            asked = ClaimRequest(
                claim=claim, passages=_passages(passages), lang=lang, detector=detector
            )
            return await _told(context, offers.verify(asked))

    def score_spans(
        answer: str, spans: list[dict[str, Any]], gold: list[dict[str, Any]]
    ) -> dict[str, float]:
        """Score predicted spans against gold ones: IoU, Corr and F1 of characters."""
        with refusals():
            asked = ScoreRequest(
                answer=answer, spans=_spans(answer, spans), gold=_spans(answer, gold)
            )
            return offers.score(asked).model_dump()

    read = _SEARCHED if offers.searches else _GIVEN
    server.add_tool(find_hallucinations, description=_MARKS.format(read))
    server.add_tool(verify_claim, description=_JUDGES.format(read))
    server.add_tool(score_spans)


async def _told(
    context: Context[Any, Any], found: Coroutine[Any, Any, DetectionReply]
) -> DetectionReply:
    """Return what is found, and tell the caller how many claims of how many are judged."""
    steps = 0

    async def report(done: int, total: int) -> None:
        nonlocal steps
        steps = total
        await context.report_progress(done, total)

    await context.report_progress(0)
    with reporting(report):
        reply = await found
    if not steps:  # a detector that takes the answer as a whole
        await report(1, 1)
    return reply


def _passages(given: GivenPassages) -> tuple[Passage, ...]:
    return tuple(Passage(text=each) if isinstance(each, str) else each for each in given or ())


def _spans(answer: str, given: list[dict[str, Any]]) -> tuple[Span, ...]:
    try:
        return tuple(
            Span.of(answer, each["start"], each["end"], prob=each.get("prob", 1.0))
            for each in given
        )
    except (KeyError, TypeError):
        raise ValueError("a span has a start and an end, as numbers") from None

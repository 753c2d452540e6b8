"""spanlab as an MCP server: what it offers, as tools for assistants, editors and agents."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

from spanlab.lm.meter import reporting
from spanlab.schema import UNDETERMINED, Passage, Span
from spanlab.services.offers import (
    ClaimRequest,
    DetectionReply,
    DetectionRequest,
    Offers,
    ScoreRequest,
)
from spanlab.services.source_tools import add_sources, refusals
from spanlab.settings import Settings

_ABOUT = """Finds the hallucinated spans of an LLM's answer and verifies claims.
Offsets are code points of the answer, the end exclusive; evidence names passages by index."""


def mcp_server(
    offers: Offers | None,
    sources: Sequence[str] = (),
    settings: Settings | None = None,
    corpus: Path | None = None,
) -> MCPServer[Any]:
    """Return the server; ``run("stdio")`` or ``run("streamable-http")`` starts it.

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


_MARKS = "Find the parts of an answer that {} contradict or do not support."
_JUDGES = "Say whether {} support or refute a claim, with the evidence."
_GIVEN = "the passages given"
_SEARCHED = "the passages given, or what is found by a search,"
GivenPassages = list[str | Passage] | None


def _add_offers(server: MCPServer[Any], offers: Offers) -> None:
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

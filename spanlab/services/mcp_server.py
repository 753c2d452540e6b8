"""spanlab as an MCP server: what it offers, as tools for assistants, editors and agents."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

from spanlab.schema import Passage, Span
from spanlab.services.offers import ClaimRequest, DetectionRequest, Offers, ScoreRequest
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


def _add_offers(server: MCPServer[Any], offers: Offers) -> None:
    # Progress and cancellation are the SDK's: a call that is cancelled ends its model calls.
    async def find_hallucinations(
        answer: str,
        context: Context[Any, Any],
        question: str = "",
        passages: list[str] | None = None,
        detector: str | None = None,
    ) -> dict[str, Any]:
        """Find the parts of an answer that passages contradict or do not support."""
        await context.report_progress(0, 1)
        with refusals():
            given = tuple(Passage(text=text) for text in passages or ())
            asked = DetectionRequest(
                answer=answer, question=question, passages=given, detector=detector
            )
            found = await offers.find(asked)
        await context.report_progress(1, 1)
        return found.model_dump(mode="json", exclude_defaults=True)

    async def verify_claim(
        claim: str,
        context: Context[Any, Any],
        passages: list[str] | None = None,
        detector: str | None = None,
    ) -> dict[str, Any]:
        """Say whether passages, or what is found, support or refute a claim, with the evidence."""
        await context.report_progress(0, 1)
        with refusals():
            given = tuple(Passage(text=text) for text in passages or ())
            asked = ClaimRequest(claim=claim, passages=given, detector=detector)
            found = await offers.verify(asked)
        await context.report_progress(1, 1)
        return found.model_dump(mode="json", exclude_defaults=True)

    def score_spans(
        answer: str, spans: list[dict[str, Any]], gold: list[dict[str, Any]]
    ) -> dict[str, float]:
        """Score predicted spans against gold ones: IoU, Corr and F1 of characters."""
        with refusals():
            asked = ScoreRequest(
                answer=answer, spans=_spans(answer, spans), gold=_spans(answer, gold)
            )
            return offers.score(asked).model_dump()

    server.add_tool(find_hallucinations)
    server.add_tool(verify_claim)
    server.add_tool(score_spans)


def _spans(answer: str, given: list[dict[str, Any]]) -> tuple[Span, ...]:
    try:
        return tuple(
            Span.of(answer, each["start"], each["end"], prob=each.get("prob", 1.0))
            for each in given
        )
    except (KeyError, TypeError):
        raise ValueError("a span has a start and an end, as numbers") from None

"""spanlab as an MCP server: what it offers, as tools for assistants, editors and agents."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from spanlab.errors import SpanlabError
from spanlab.lm.secrets import redact
from spanlab.schema import Passage, Span
from spanlab.services.offers import ClaimRequest, DetectionRequest, Offers, ScoreRequest

_ABOUT = """Finds the hallucinated spans of an LLM's answer and verifies claims.
Offsets are code points of the answer, the end exclusive; evidence names passages by index."""


def mcp_server(offers: Offers) -> MCPServer[Any]:
    """Return the server; ``run("stdio")`` or ``run("streamable-http")`` starts it."""
    server: MCPServer[Any] = MCPServer("spanlab", instructions=_ABOUT, log_level="ERROR")

    async def find_hallucinations(
        answer: str,
        context: Context[Any, Any],
        question: str = "",
        passages: list[str] | None = None,
        detector: str | None = None,
    ) -> dict[str, Any]:
        """Find the parts of an answer that passages contradict or do not support."""
        await context.report_progress(0, 1)
        given = tuple(Passage(text=text) for text in passages or ())
        try:
            asked = DetectionRequest(
                answer=answer, question=question, passages=given, detector=detector
            )
            found = await offers.find(asked)
        except (SpanlabError, ValueError) as error:
            raise ToolError(redact(str(error))) from None
        await context.report_progress(1, 1)
        return found.model_dump(mode="json", exclude_defaults=True)

    async def verify_claim(
        claim: str, passages: list[str] | None = None, detector: str | None = None
    ) -> dict[str, Any]:
        """Say whether passages, or what is found, support or refute a claim, with the evidence."""
        given = tuple(Passage(text=text) for text in passages or ())
        try:
            asked = ClaimRequest(claim=claim, passages=given, detector=detector)
            found = await offers.verify(asked)
        except (SpanlabError, ValueError) as error:
            raise ToolError(redact(str(error))) from None
        return found.model_dump(mode="json", exclude_defaults=True)

    async def search_passages(query: str, k: int = 5) -> list[dict[str, Any]]:
        """Search the index for the passages that come closest to a query."""
        try:
            found = await offers.search(query, max(1, min(k, 50)))
        except SpanlabError as error:
            raise ToolError(redact(str(error))) from None
        return [each.model_dump(mode="json", exclude_defaults=True) for each in found]

    def score_spans(
        answer: str, spans: list[dict[str, Any]], gold: list[dict[str, Any]]
    ) -> dict[str, float]:
        """Score predicted spans against gold ones: IoU, Corr and F1 of characters."""
        try:
            asked = ScoreRequest(
                answer=answer, spans=_spans(answer, spans), gold=_spans(answer, gold)
            )
            return offers.score(asked).model_dump()
        except (SpanlabError, ValueError, KeyError) as error:
            raise ToolError(redact(f"spans need start and end in the answer: {error}")) from None

    # Progress and cancellation are the SDK's: a call that is cancelled ends its model calls.
    server.add_tool(find_hallucinations)
    server.add_tool(verify_claim)
    server.add_tool(score_spans)
    if offers.searches:
        server.add_tool(search_passages)
    return server


def _spans(answer: str, given: list[dict[str, Any]]) -> tuple[Span, ...]:
    return tuple(
        Span.of(answer, each["start"], each["end"], prob=each.get("prob", 1.0)) for each in given
    )

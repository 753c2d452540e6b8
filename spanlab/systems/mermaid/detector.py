"""MERMAID: an agent with tools, and a memory of evidence that spares it searches.

Cao et al. 2026, "MERMAID: Memory-Enhanced Retrieval and Reasoning with Multi-Agent Iterative
Knowledge Grounding for Veracity Assessment". How it works:

1. **Claims** (``claims.ClaimExtractor``): the answer is taken apart, or is one claim.
2. **Decomposer**: the claim as triplets (subject, relation, object, attributes) and topics.
3. **Recall**: what the memory holds about subjects and objects goes into the first prompt; without
   the decomposer, what it holds about the names in the claim.
4. **Executor** (``executor``, algorithm 1): thought, call of a tool (a search, the pages it finds,
   and those of MCP servers), observation, at most five times; it answers as soon as the evidence
   is enough, and in the end it has to.
5. **Update**: sentences of what was observed that speak of the claim are kept for later ones.
6. **Spans** (``claims.placed``): the words of the answer that state what is refuted.

Published, with GPT-4o: macro F1 .80, .77 and .77 on FacTool-QA, BingCheck and FactCheck-Bench;
without the decomposer .03 less; 1,840 calls of tools became 1,533 with the memory.

Deviations. The prompts are our own. A claim has a verdict, not True or False, and may have one of
four. A call that was made before is answered from the history, and the same call of several
claims is made once. Names of entities need not be written alike to be recalled. Evidence is looked
up by all subjects and objects, as in the paper, but kept under common nouns only where a claim has
no proper name: "steps" would else recall what was found for every other tower, and spare searches
by evidence that says nothing of the claim. Steps are read in more spellings than the prompt asks
for (``prompts``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from pydantic import JsonValue

from spanlab.base.errors import ToolError
from spanlab.base.runtime import SingleFlight
from spanlab.detection.base import DetectorKit
from spanlab.detection.common.claim_detector import ClaimDetector, ClaimJudgement
from spanlab.detection.common.context import ranked
from spanlab.detection.common.evidence import (
    GIVEN,
    published_before,
)
from spanlab.detection.common.model_detector import DetectionCase
from spanlab.schema import Passage, RemarkStep
from spanlab.search.base import GivenPassages, SearchQuery
from spanlab.systems.mermaid import MermaidOptions
from spanlab.systems.mermaid.inquiry import ClaimInquiry, InquiryTools, MermaidProgram
from spanlab.tools import Tool
from spanlab.tools.mcp_servers import ServerState


class Mermaid(ClaimDetector):
    """Gathers evidence for claims with tools, step by step."""

    program: MermaidProgram

    def __init__(self, kit: DetectorKit) -> None:
        self.options = MermaidOptions.model_validate(kit.spec.options)
        program = MermaidProgram(self.options)
        super().__init__(kit, program, guided="think", whole=self.options.claims == "answer")
        self._means = InquiryTools(self.options, self.options.opened(kit))
        self._asking: SingleFlight[Sequence[ServerState]] = SingleFlight()
        self._servers: Sequence[ServerState] | None = None

    async def prepare(self, case: DetectionCase) -> None:
        """Search for nothing yet: the agent does. The tools of servers are listed once."""
        listing, names = self.kit.tools, self.options.tools
        if self._servers is None:
            if listing is None or not names:
                return
            self._servers = await self._asking.join(names, lambda: listing(names))
            tools = tuple(tool for server in self._servers for tool in server.tools)
            self._means = replace(self._means, tools=tools)
        for server in self._servers:
            if server.problem is not None:
                case.trace.append(RemarkStep(text=f"judged without its tools: {server.problem}"))

    async def verify(self, case: DetectionCase, number: int, claim: str) -> ClaimJudgement:
        """Gather evidence for one claim and judge it."""
        own = own_tools(self.kit, case, published_before(case.item))
        means = replace(self._means, tools=(*own, *self._means.tools))
        inquiry = ClaimInquiry(self, case, claim, means)
        await inquiry.take_apart()
        await inquiry.recall()
        if inquiry.known.notes:
            outcome = await inquiry.run()
        else:
            # Claims about the same that begin together wait for the one that will keep something.
            async with inquiry.known.turn():
                await inquiry.recall()
                outcome = await inquiry.run()
        return ClaimJudgement(
            verdict=outcome.execution.answer,
            reason=inquiry.reason or outcome.execution.thought,
            evidence=outcome.evidence(case.item),
            steps=tuple(outcome.steps(number)),
        )


HITS = 5  # passages that a search gives
SEARCH = "search"
PAGE = "read_page"


def own_tools(kit: DetectorKit, case: DetectionCase, before: date | None) -> list[Tool]:
    """Return the search of a run, over the item's passages if it has none, and its pages.

    Args:
        kit: with the retriever and the pages.
        case: the item, whose passages name the addresses that may be read.
        before: the day before which evidence must be published; None for any.
    """
    given = tuple(case.item.passages) if isinstance(kit.retriever, GivenPassages) else None

    async def search(arguments: Mapping[str, JsonValue]) -> Sequence[Passage]:
        text = " ".join(str(arguments["query"]).split())
        if given is not None:
            best = ranked([passage.text for passage in given], text)
            return [given[index] for index in best[:HITS]]
        query = SearchQuery(text, language=case.item.lang, k=HITS, before=before, item=case.item.id)
        retrieved = await kit.retriever.search(query)
        return [passage for passage in retrieved.passages if query.admits(passage)][:HITS]

    async def read(arguments: Mapping[str, JsonValue]) -> Sequence[Passage]:
        url = str(arguments["url"]).strip()
        held_passage = next((passage for passage in case.item.passages if passage.url == url), None)
        if held_passage is None or kit.pages is None:
            raise ToolError(f"no search has found {url[:200]!r}: only what was found can be read")
        page = await kit.pages.read(url)
        title, day = held_passage.title or page.title, held_passage.date or page.date
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

"""MERMAID: an agent with tools, and a memory of evidence that spares it searches.

What it says of itself, its options, and what it costs at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from spanlab.detection.common import EXTRACTOR, ClaimsOption, MemoryOptions, MemoryUse, claim_calls
from spanlab.detection.entry import (
    INSTRUCTION,
    JUDGE,
    CallEstimate,
    ChosenOptions,
    DetectorEntry,
    PromptSize,
)

_OBSERVATION = 1_000  # tokens that a call brings


class MermaidOptions(ClaimsOption, MemoryOptions):
    """How evidence for a claim is gathered."""

    memory: MemoryUse = "on"
    steps: int = Field(
        5, ge=0, le=20, description="Most steps per claim; then a verdict is forced."
    )
    decompose: bool = Field(True, description="Split the claim into triplets and topics first.")
    tools: str = Field(
        "",
        title="Tool servers",
        description="Tool servers to use besides search, separated by commas.",
        json_schema_extra={"format": "servers"},
    )
    classes: Literal[2, 4] = Field(
        2,
        title="Verdict classes",
        description="2: supported or refuted; 4: also not enough or conflicting evidence.",
    )


def _calls(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    options = MermaidOptions.model_validate(spec.options)
    claims, calls = claim_calls(size, options)
    yield from calls
    steps = options.steps
    if options.decompose:
        yield CallEstimate(claims, INSTRUCTION, 120)
    # What the calls before a step brought is read again at every step.
    yield CallEstimate(claims * steps, INSTRUCTION + _OBSERVATION * steps // 2, 120)
    yield CallEstimate(claims, INSTRUCTION + _OBSERVATION * steps, 120)


def _searches(size: PromptSize, spec: ChosenOptions) -> int:
    options = MermaidOptions.model_validate(spec.options)
    claims, _ = claim_calls(size, options)
    return claims * options.steps


ENTRY = DetectorEntry(
    name="mermaid",
    title="Investigates with tools and memory",
    what="an agent with tools and a memory gathers evidence for every claim and judges it",
    needs="a model, up to 7 calls a claim, and a search (without one it reads the passages)",
    create="spanlab.systems.mermaid.detector:Mermaid",
    options=MermaidOptions,
    roles=(JUDGE, EXTRACTOR),
    prompts=("think", "judge"),
    tuned_on="claims",
    estimate=_calls,
    searches=_searches,
    reads_pages=True,
)

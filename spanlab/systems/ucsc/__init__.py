"""The detectors of "UCSC at SemEval-2025 Task 3" (Huang et al. 2025).

The system that won the Mu-SHROOM shared task by average rank: retrieve context for a question,
extract what an answer says beyond it, map that to characters.

    extract   quotes of the answer → their places
    facts     facts of the answer, checked against a graph of the passages → the words stating them
    revise    the answer, corrected with the fewest changes → what was changed

``spanlab.detection.ensemble`` lets several of them vote. What they say of themselves, their
options, and what they cost at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field

from spanlab.detection.common.label_options import LabelOptions
from spanlab.detection.entry import (
    INSTRUCTION,
    JUDGE,
    THINKING,
    CallEstimate,
    ChosenOptions,
    DetectorEntry,
    PromptSize,
)
from spanlab.models import ModelOptions
from spanlab.schema import Probability

MAX_ROUNDS = 4  # calls per fact; the paper leaves the number open, most facts need one look-up
MAX_FACTS = 40  # facts of one answer that are checked; more are left out, which the trace says
PAPER = ModelOptions(temperature=0.2, top_p=0.7, seed=42)  # Huang et al. 2025, released settings
UNVERIFIED = 0.5  # the highest probability of what could not be verified
_FACT = 14  # tokens of an answer that make one fact


class UnsupportedOptions(LabelOptions):
    """What counts as unsupported, and which labels spans get."""

    unsupported: Literal["passages", "certain"] = Field(
        "certain",
        description="What the passages do not say (passages, as in the paper), or only what "
        "the model is not certain of either (certain).",
    )


class QuoteOptions(UnsupportedOptions):
    """How quotes become spans."""

    floor: Probability = Field(
        0.85,
        title="Quote similarity",
        description="How alike a quote and its place in the answer must be.",
    )


class ExtractOptions(QuoteOptions):
    """How quotes become spans, and what they come with."""

    explain: bool = Field(
        False, description="Ask for a reason of each quote, which becomes the span's note."
    )


class GraphOptions(QuoteOptions):
    """What of the facts is marked."""

    unverified: bool = Field(
        False,
        description="Mark also facts that could not be verified, at most half as likely, as "
        "the paper does: all spans then count as marked.",
    )


class RevisionOptions(UnsupportedOptions):
    """What of a revision is marked."""

    refine: Literal["word", "char"] = Field(
        "word", title="Granularity", description="Mark whole words, or characters."
    )
    insertions: bool = Field(False, description="Mark also where something was only added.")
    prob: Probability | None = Field(
        None,
        title="Span probability",
        description="Probability of the spans; empty for the size of the change.",
    )


def _labelling(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    if spec.options.get("labels"):
        yield CallEstimate(1, size.whole + size.answer // 2, 10 + size.answer // 8)


def _extract_calls(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    said = 30 + size.answer // (1 if spec.options.get("explain") else 2)
    yield CallEstimate(1, size.whole, said + spec.reasoning * THINKING)
    yield from _labelling(size, spec)


def _revise_calls(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    yield CallEstimate(1, size.whole, 20 + size.answer + spec.reasoning * THINKING)
    yield from _labelling(size, spec)


def _kg_calls(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    if size.passages:
        prompt_tokens = INSTRUCTION + size.passages + size.question
        yield CallEstimate(1, prompt_tokens, min(size.passages, 2000))
    yield CallEstimate(1, INSTRUCTION + size.question + size.answer, 50 + 3 * size.answer)
    facts = min(max(size.answer // _FACT, 1), MAX_FACTS)
    seen = INSTRUCTION + size.question + min(size.passages, 600)
    checks = facts * (MAX_ROUNDS if size.passages else 1)
    yield CallEstimate(checks, seen, 80 + spec.reasoning * THINKING)
    yield CallEstimate(facts, INSTRUCTION + size.question + size.answer, 30)
    yield from _labelling(size, spec)


EXTRACT = DetectorEntry(
    name="ucsc-extract",
    title="Quotes what is wrong",
    preset="With a model",
    what="a model quotes what the passages do not support",
    needs="a model, one call an item; passages or a retriever help",
    create="spanlab.systems.ucsc.extract:create",
    options=ExtractOptions,
    roles=(JUDGE,),
    asked=PAPER,
    prompts=("extract",),
    estimate=_extract_calls,
)
KG = DetectorEntry(
    name="ucsc-kg",
    title="Checks facts on a graph",
    what="a model checks the answer's facts against a graph of the passages",
    needs="a model, 2 calls an item and 1 to 5 a fact; passages or a retriever",
    create="spanlab.systems.ucsc.facts:create",
    options=GraphOptions,
    roles=(JUDGE,),
    asked=PAPER,
    prompts=("graph", "facts", "check", "words"),
    estimate=_kg_calls,
)
REVISE = DetectorEntry(
    name="ucsc-revise",
    title="Corrects, then compares",
    what="a model corrects the answer; its changes are marked",
    needs="a model (best a reasoning one), one call an item; passages or a retriever help",
    create="spanlab.systems.ucsc.revise:create",
    options=RevisionOptions,
    roles=(JUDGE,),
    asked=PAPER,
    prompts=("revise",),
    estimate=_revise_calls,
)
UCSC = DetectorEntry(
    name="ucsc",
    title="Five detectors vote",
    preset="Thorough: an ensemble",
    what="five detectors vote, as in the paper",
    needs="the models of its members, five calls an item; passages or a retriever help",
    members=Path(__file__).with_name("ensemble.json"),
)

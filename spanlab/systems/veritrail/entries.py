"""What VeriTrail and its baselines say of themselves, their options, and their cost at most."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from spanlab.detection.common import EXTRACTOR, ClaimsOption, MemoryOptions, claim_calls
from spanlab.detection.entry import (
    INSTRUCTION,
    JUDGE,
    CallEstimate,
    ChosenOptions,
    DetectorEntry,
    PromptSize,
)

_SENTENCE = 25  # tokens
_PARTS = 3  # calls that take a claim apart, as a rule


class ClaimOptions(ClaimsOption):
    """Which claims are judged, and how often."""

    samples: int = Field(1, ge=1, le=25, description="Answers per prompt, for a soft score.")
    agreeing: int = Field(
        1,
        title="Samples that must agree",
        ge=1,
        le=25,
        description="How many of them must agree on a verdict.",
    )


class VeriTrailOptions(ClaimOptions, MemoryOptions):
    """How a claim is followed."""

    q: int = Field(
        1,
        title="“Not supported” verdicts in a row",
        ge=1,
        description="This many “not supported” verdicts in a row end the search.",
    )
    sentences: int = Field(40, ge=1, description="Most sentences per prompt.")
    root_sentences: int = Field(40, ge=1, description="Most sentences per prompt of the sources.")
    judged: int = Field(
        200, title="Sentences per verdict", ge=1, description="Most selected sentences per verdict."
    )
    judged_roots: int = Field(
        0,
        title="Source sentences per verdict",
        ge=0,
        description="Most selected source sentences per verdict; 0: no limit.",
    )


class RetrievalOptions(ClaimOptions):
    """How many texts a verdict rests on."""

    k: int = Field(
        15,
        title="Closest texts",
        ge=1,
        description="How many of the closest texts a verdict rests on.",
    )


def _calls(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    yield from _judging(size, spec)
    options = VeriTrailOptions.model_validate(spec.options)
    prompts = max(-(-size.passages // (_SENTENCE * options.sentences)), 1)
    again = claim_calls(size, options).claims * options.samples
    yield CallEstimate(prompts * again, INSTRUCTION + size.passages // prompts, 120)


def _judging(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    """Yield the calls of what all these detectors do: claims, their parts, verdicts and words."""
    shared = ClaimOptions.model_fields.keys() & spec.options.keys()
    options = ClaimOptions.model_validate({name: spec.options[name] for name in shared})
    claims, calls = claim_calls(size, options)
    yield from calls
    yield CallEstimate(_PARTS * claims, INSTRUCTION + size.question + size.answer, 60, EXTRACTOR)
    yield CallEstimate(claims * options.samples, INSTRUCTION + size.passages, 150)


VERITRAIL = DetectorEntry(
    name="veritrail",
    title="Traces claims to their sources",
    what="a model traces every claim back to its sources, through the texts in between",
    needs="a model, 3 calls a sentence and 5 or more a claim; passages or an item's process",
    create="spanlab.systems.veritrail.detector:create",
    options=VeriTrailOptions,
    roles=(JUDGE, EXTRACTOR),
    prompts=("judge",),
    tuned_on="claims",
    estimate=_calls,
)


def _baseline(name: str, title: str, what: str, options: type[ClaimOptions]) -> DetectorEntry:
    """Return what one of the paper's baselines says of itself (§4.2, appendix E.1)."""
    return DetectorEntry(
        name=name,
        title=title,
        what=f"baseline: {what}",
        needs="a model, 3 calls a sentence and 4 or more a claim; passages or an item's process",
        create="spanlab.systems.veritrail.detector:create_baseline",
        options=options,
        roles=(JUDGE, EXTRACTOR),
        prompts=("judge",),
        tuned_on="claims",
        estimate=_judging,
        baseline=True,
    )


RETRIEVAL = _baseline(
    "veritrail-rag",
    "Judges claims on close texts",
    "a model judges every claim on the source texts most similar to it",
    RetrievalOptions,
)
WHOLE = _baseline(
    "veritrail-source",
    "Judges claims on the whole source",
    "a model judges every claim on the whole source, as far as it fits into a prompt",
    ClaimOptions,
)
TRACED_RETRIEVAL = _baseline(
    "veritrail-vt-rag",
    "Traces claims by close texts",
    "claims are traced as by veritrail, through the texts most similar to them",
    RetrievalOptions,
)

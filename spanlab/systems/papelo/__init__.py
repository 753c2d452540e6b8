"""Papelo: a claim is pursued question by question, each answered from the web.

What it says of itself, its options, and what it costs at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

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

_HITS = 1_000  # tokens of ten search results
_WINDOW = 250  # tokens of five sentences


class PapeloOptions(ClaimsOption, MemoryOptions):
    """How a claim is pursued."""

    n: int = Field(
        5, title="Questions per claim", ge=1, le=20, description="Question-answer pairs per claim."
    )
    first: Literal["rephrase", "model"] = Field(
        "rephrase",
        title="First question",
        description="The claim rephrased as a question, or a question of the model's own.",
    )
    first_model: str = Field(
        "",
        description="A local sequence-to-sequence checkpoint that writes the first question, "
        "such as a T5 trained on AVeriTeC: a folder with tokenizer.json, config.json and "
        "model.safetensors, or encoder_model.onnx and decoder_model.onnx; or the name of one "
        "that was downloaded.",
        json_schema_extra={"format": "path"},
    )
    questions: Literal["pursued", "at-once"] = Field(
        "pursued", description="Ask one question after the other, or all at once."
    )
    classes: Literal[2, 4] = Field(
        2,
        title="Verdict classes",
        description="2: supported or refuted; 4: also not enough or conflicting evidence.",
    )
    late: bool = Field(
        True,
        title="Final verdict may overturn an early one",
        description="The verdict over all pairs may overturn the early one.",
    )
    fill: Literal["paraphrase", "repeat", "none"] = Field(
        "paraphrase",
        title="Fill up after an early verdict",
        description="How pairs are filled up once the claim is settled: paraphrased questions "
        "are answered again, repeated ones are not.",
    )
    documents: Literal["one", "many"] = Field(
        "one", description="Answer from the best document, or from all results."
    )
    long_document: bool = Field(
        True, description="Read the page around the snippet, not the snippet alone."
    )
    metadata: bool = Field(
        True, description="Show the model title, site and date of each document."
    )


def _calls(size: PromptSize, spec: ChosenOptions) -> Iterable[CallEstimate]:
    options = PapeloOptions.model_validate(spec.options)
    claims, calls = claim_calls(size, options)
    yield from calls
    pairs = claims * options.n
    if not options.first_model:
        yield CallEstimate(claims, INSTRUCTION, 40)  # the first question
    # The best document; once more for one whose page may not be read, which few are.
    yield CallEstimate(pairs, INSTRUCTION + _HITS, 80)
    yield CallEstimate(pairs, INSTRUCTION + _WINDOW, 80)  # the answer
    yield CallEstimate(pairs, INSTRUCTION + 100 * options.n, 60)  # the next question
    yield CallEstimate(claims * (options.n // 2), INSTRUCTION, 100)  # paraphrases
    yield CallEstimate(claims, INSTRUCTION + 100 * options.n, 120)  # the verdict


def _searches(size: PromptSize, spec: ChosenOptions) -> int:
    options = PapeloOptions.model_validate(spec.options)
    claims, _ = claim_calls(size, options)
    return claims * options.n * 2  # again with the names alone, where nothing is found


ENTRY = DetectorEntry(
    name="papelo",
    title="Pursues claims on the web",
    what="a model asks questions about every claim, searches the web for answers, and judges",
    needs="a model, 10 to 20 calls a claim, and a search (without one it reads the passages)",
    create="spanlab.systems.papelo.detector:Papelo",
    options=PapeloOptions,
    roles=(JUDGE, EXTRACTOR),
    prompts=("judge",),
    tuned_on="claims",
    estimate=_calls,
    searches=_searches,
    reads_pages=True,
)

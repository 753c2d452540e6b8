"""What detectors that ask a language model share; no detector itself.

    model_detector ── the base class: an item's way through a detector, failures, what calls came to
    claim_detector ── the base class of those that take claims out of an answer and judge each
    context ───────── the passages of an item as text for a prompt, chosen if there are too many
    evidence ──────── the sentence of the passages that a span or claim is to be read beside

Options that several detectors share are here. What a detector works with (its
``DetectorKit``) and how it is found (its ``DetectorEntry``) is one floor up.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from spanlab.detection.base import DetectorKit
from spanlab.detection.entry import INSTRUCTION, CallEstimate, DetectorOptions, PromptSize

if TYPE_CHECKING:
    from spanlab.detection.memory import EvidenceMemory


EXTRACTOR = "extractor"  # the role of the model that takes claims out of answers
_CLAIM = 20  # tokens of an answer that make one claim


class ClaimsOption(DetectorOptions):
    """Which claims are judged."""

    claims: Literal["extracted", "answer"] = Field(
        "extracted", description="Claims are taken out of the answer, or the answer is one claim."
    )


class ClaimCalls(NamedTuple):
    """About how many claims an answer has, and the calls that take them out and name words."""

    claims: int
    calls: Iterable[CallEstimate]


def claim_calls(size: PromptSize, options: ClaimsOption) -> ClaimCalls:
    """Return what every detector of claims asks beside its verifier."""
    whole = options.claims == "answer"
    claims = 1 if whole else max(size.answer // _CLAIM, 1)
    shown = INSTRUCTION + size.question + size.answer
    words = CallEstimate(claims, shown, 30)
    return ClaimCalls(
        claims, [words] if whole else [CallEstimate(3 * claims, shown, 60, EXTRACTOR), words]
    )


MemoryUse = Annotated[
    Literal["on", "read-only", "off"],
    Field(description="Recall evidence of earlier claims and keep it, only recall, or neither."),
]


class MemoryOptions(DetectorOptions):
    """How the memory of evidence is used."""

    memory: MemoryUse = "off"
    memory_scope: str = Field(
        "", max_length=200, description="Whose memory: runs that give the same name share one."
    )
    memory_as_of: date | None = Field(
        None, description="Recall what was kept until this day (YYYY-MM-DD); keep nothing."
    )

    def opened(self, kit: DetectorKit) -> EvidenceMemory:
        """Return the memory as these options use it; one that holds nothing if the kit has none."""
        from spanlab.detection.memory import EvidenceMemory, MemoryChoice

        choice = MemoryChoice(mode=self.memory, scope=self.memory_scope, as_of=self.memory_as_of)
        return EvidenceMemory(None, choice) if kit.memory is None else kit.memory(choice)

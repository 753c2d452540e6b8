"""The option and the costs that all detectors of claims share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from spanlab.detectors.entry import INSTRUCTION, CallEstimate, DetectorOptions, PromptSize

EXTRACTOR = "extractor"  # the role of the model that takes claims out of answers
_CLAIM = 20  # tokens of an answer that make one claim


class ClaimsOption(DetectorOptions):
    """Which claims are judged."""

    claims: Annotated[
        Literal["extracted", "answer"],
        Field(description="Claims are taken out of the answer, or the answer is one claim."),
    ] = "extracted"


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

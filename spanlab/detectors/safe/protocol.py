"""The errors that a step may have, and which of several is reported.

After Kwon et al. 2026, "SAFE", Table 9 and the evaluation protocol of appendix A.9: a useless step
is reported before a false one, and of several errors the first in the protocol's order.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from spanlab.detectors.safe.reading import StepKind


class Family(StrEnum):
    """The groups of errors."""

    PROCEDURAL = "Procedural"
    ATTRIBUTION = "Attribution"
    LOGICAL = "Logical"
    FINAL_ANSWER = "Final Answer"


class ErrorType(StrEnum):
    """What can be wrong with a step, in the order of the protocol.

    ``MISSING_EVIDENCE`` is the paper's extension for incomplete evidence (§5, finding 5). It stands
    before ``UNSUPPORTED``, of which it names the cause.
    """

    WRONG_CONCLUSION = "Wrong Conclusion"  # a final answer that does not follow from the steps
    OVERTHINKING = "Overthinking"  # the steps before give the answer already
    OFF_TOPIC = "Off-topic"  # true or not, it does not lead to the answer
    REDUNDANCY = "Redundancy"  # says nothing that the steps before do not say
    INEFFICIENCY = "Inefficiency"  # plans or sums up; states no fact and concludes nothing
    CONTRADICTORY = "Contradictory"  # a passage says otherwise
    MISSING_EVIDENCE = "Missing Evidence"  # no passage says what is needed here
    UNSUPPORTED = "Unsupported"  # the passage that it cites does not say so
    INFORMATION_MISS = "Information Miss"  # says that something is missing which is there
    PREMATURE_ATTRIBUTION = "Premature Attribution"  # of an entity not connected to the question
    LOGICAL_FALLACY = "Logical Fallacy"  # does not follow from the steps before

    @property
    def family(self) -> Family:
        """The group that the error belongs to."""
        return _FAMILIES[self]


PROCEDURAL: Final = (
    ErrorType.OVERTHINKING,
    ErrorType.OFF_TOPIC,
    ErrorType.REDUNDANCY,
    ErrorType.INEFFICIENCY,
)
ATTRIBUTION: Final = (
    ErrorType.CONTRADICTORY,
    ErrorType.MISSING_EVIDENCE,
    ErrorType.UNSUPPORTED,
    ErrorType.INFORMATION_MISS,
    ErrorType.PREMATURE_ATTRIBUTION,
)
_FAMILIES: Final = {
    **dict.fromkeys(PROCEDURAL, Family.PROCEDURAL),
    **dict.fromkeys(ATTRIBUTION, Family.ATTRIBUTION),
    ErrorType.LOGICAL_FALLACY: Family.LOGICAL,
    ErrorType.WRONG_CONCLUSION: Family.FINAL_ANSWER,
}
_ORDER: Final = {
    StepKind.ATTRIBUTION: (*PROCEDURAL, *ATTRIBUTION),
    StepKind.LOGICAL: (*PROCEDURAL, ErrorType.LOGICAL_FALLACY),
    StepKind.FINAL_ANSWER: (ErrorType.WRONG_CONCLUSION,),
}
_OF_THE_KIND: Final = {  # what a false step of a kind is called, whatever else it was called
    StepKind.ATTRIBUTION: ErrorType.UNSUPPORTED,
    StepKind.LOGICAL: ErrorType.LOGICAL_FALLACY,
    StepKind.FINAL_ANSWER: ErrorType.WRONG_CONCLUSION,
}


def first_error(kind: StepKind, found: Collection[ErrorType]) -> ErrorType | None:
    """Return the error to report of a step.

    Args:
        kind: what the step does.
        found: everything that was found wrong with it.

    Returns:
        The first error in the order of the protocol for steps of this kind. An error that such a
        step cannot have stands for the one it can: a conclusion that contradicts a passage is a
        logical fallacy. A final answer is never useless. None if nothing is wrong.
    """
    in_order = (error for error in _ORDER[kind] if error in found)
    false = any(error.family is not Family.PROCEDURAL for error in found)
    return next(in_order, _OF_THE_KIND[kind] if false else None)

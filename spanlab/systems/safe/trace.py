"""A step of a reasoning in a trace."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from spanlab.base.fields import Offset
from spanlab.schema.trace import AnswerPlace, TraceStep


class ReasoningTraceStep(TraceStep):
    """A step of a reasoning and what a verifier said of it.

    ``number`` is the step's, from 1; ``round`` counts its attempts, of which ``stands`` says which
    one was kept. ``does`` is what the step does: Attribution, Logical, Final Answer. ``error`` is
    the type of its error, None for a right step, and ``family`` the group that it belongs to.
    ``places`` are its characters in the answer; a refused attempt has none.
    """

    kind: Literal["reasoning"] = "reasoning"
    number: Annotated[int, Field(ge=1)]
    text: str
    does: str
    error: str | None = None
    family: str | None = None
    diagnosis: str = ""
    guidance: str = ""
    stands: bool = True
    passages: tuple[Offset, ...] = ()
    places: tuple[AnswerPlace, ...] = ()

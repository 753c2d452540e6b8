"""A thought of an agent in a trace."""

from __future__ import annotations

from collections.abc import Set
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from spanlab.base.fields import Offset
from spanlab.schema.trace import TraceStep


class ThoughtStep(TraceStep):
    """What an agent thought, the tool it called, and what it observed.

    Without a ``tool`` it called none; the last thought comes with the verdict. ``passages`` are
    the 0-based indices of what the call brought, ``failure`` is why it brought nothing.
    ``repeats`` is the round whose call it made again; it was given the observation of that one.
    """

    kind: Literal["thought"] = "thought"
    text: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    passages: tuple[Offset, ...] = ()
    failure: str | None = None
    repeats: Annotated[int, Field(ge=1)] | None = None

    def has_searched(self, recalled: Set[int]) -> bool:
        """Count calls, but those made again: they were given what they had brought before."""
        return self.tool is not None and self.repeats is None

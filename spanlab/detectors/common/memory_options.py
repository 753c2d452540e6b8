"""The options of detectors that recall evidence and keep it."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from spanlab.detectors.entry import Options

if TYPE_CHECKING:
    from spanlab.memory import MemoryChoice


class MemoryOptions(Options):
    """How the memory of evidence is used."""

    memory: Annotated[
        Literal["on", "read-only", "off"],
        Field(
            description="Recall evidence of earlier claims and keep it, only recall, or neither."
        ),
    ] = "on"
    memory_scope: Annotated[
        str,
        Field(max_length=200, description="Whose memory: runs that give the same name share one."),
    ] = ""
    memory_as_of: Annotated[
        date | None,
        Field(description="Recall what was kept until this day (YYYY-MM-DD); keep nothing."),
    ] = None

    @property
    def memory_choice(self) -> MemoryChoice:
        """The same, as the memory takes it."""
        from spanlab.memory import MemoryChoice

        return MemoryChoice(mode=self.memory, scope=self.memory_scope, as_of=self.memory_as_of)

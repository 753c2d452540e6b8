"""The options of detectors that recall evidence and keep it."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from spanlab.detectors.base import DetectorKit
from spanlab.detectors.entry import DetectorOptions

if TYPE_CHECKING:
    from spanlab.memory import EvidenceMemory


MemoryUse = Annotated[
    Literal["on", "read-only", "off"],
    Field(description="Recall evidence of earlier claims and keep it, only recall, or neither."),
]


class MemoryOptions(DetectorOptions):
    """How the memory of evidence is used."""

    memory: MemoryUse = "off"
    memory_scope: Annotated[
        str,
        Field(max_length=200, description="Whose memory: runs that give the same name share one."),
    ] = ""
    memory_as_of: Annotated[
        date | None,
        Field(description="Recall what was kept until this day (YYYY-MM-DD); keep nothing."),
    ] = None

    def opened(self, kit: DetectorKit) -> EvidenceMemory:
        """Return the memory as these options use it; one that holds nothing if the kit has none."""
        from spanlab.memory import EvidenceMemory, MemoryChoice

        choice = MemoryChoice(mode=self.memory, scope=self.memory_scope, as_of=self.memory_as_of)
        return EvidenceMemory(None, choice) if kit.memory is None else kit.memory(choice)

"""Evidence that was found once, kept under the entities of claims for all that come later.

names ──── when two names are one entity
ranking ── which of the evidence about an entity a claim is shown
memory ─── recall and keep, as a run may; one call of a tool for all who ask the same
"""

from __future__ import annotations

from spanlab.memory.memory import Memory, MemoryChoice, expires, memory, passage_of
from spanlab.storage.memory_entry import MemoryEntry

__all__ = ["Memory", "MemoryChoice", "MemoryEntry", "expires", "memory", "passage_of"]

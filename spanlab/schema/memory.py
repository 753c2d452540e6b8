"""Evidence kept in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from spanlab.base.fields import FrozenModel


class MemoryEntry(FrozenModel):
    """A piece of evidence: some sentences of a source, and how they were found.

    ``date`` is when the source was published, ``at`` when the entry was kept, ``expires`` when it
    no longer counts, None for never. ``kind`` is the kind of source. ``entities`` are the keys it
    is kept under, where they are asked for.
    """

    text: str
    entities: tuple[str, ...] = ()
    title: str | None = None
    url: str | None = None
    date: str | None = None
    query: str = ""
    tool: str = ""
    kind: str = ""
    model: str = ""
    at: float
    expires: float | None = None

    @property
    def digest(self) -> str:
        """The same for two entries of the same source with the same words."""
        same = f"{self.url or ''}\n{' '.join(self.text.split()).casefold()}"
        return hashlib.sha256(same.encode()).hexdigest()

    @property
    def written(self) -> str:
        """What is stored of it as a whole, beside what has a column of its own."""
        return self.model_dump_json(exclude_defaults=True, exclude={"at", "expires", "entities"})


@dataclass(frozen=True)
class StoredEntry:
    """An entry with its number, and what people said of it."""

    id: int
    entry: MemoryEntry
    pinned: bool = False
    blocked: bool = False

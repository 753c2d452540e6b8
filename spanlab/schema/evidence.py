"""Passages, evidence quoted from them, and evidence kept in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import model_validator

from spanlab.schema.fields import FrozenModel, Offset

Stance = Literal["supports", "refutes", "closest"]


class _Quote(FrozenModel):
    """Characters ``[start, end)`` of some text, with the text itself."""

    start: Offset
    end: Offset
    text: str

    @model_validator(mode="after")
    def _length_is_right(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"end {self.end} must be greater than start {self.start}")
        if len(self.text) != self.end - self.start:
            raise ValueError(
                f"text {self.text[:40]!r} has {len(self.text)} characters, "
                f"offsets [{self.start}, {self.end}) have {self.end - self.start}"
            )
        return self

    def fits(self, whole: str) -> bool:
        """Say whether ``whole`` has exactly this text at these offsets."""
        return whole[self.start : self.end] == self.text


class Passage(FrozenModel):
    """A piece of evidence text; ``title``, ``url`` and ``date`` (as its source has it) if known."""

    text: str
    title: str | None = None
    url: str | None = None
    date: str | None = None


class Evidence(_Quote):
    """A quoted part of one of the item's passages.

    ``passage`` is the 0-based index of the passage. ``stance`` says what the quote does to the
    span or claim it is tied to; ``closest`` means only that nothing in the passages comes closer.
    """

    passage: Offset
    stance: Stance = "closest"
    note: str | None = None


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

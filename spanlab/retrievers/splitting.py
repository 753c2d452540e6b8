"""Long texts as passages of bounded length that end where a paragraph or a sentence ends."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 1200  # characters: about eight sentences, of which a handful fit any prompt

_SPACE = re.compile(r"\s*")
_PARAGRAPH = re.compile(r"(?=\n[^\S\n]*\n)")
# A full stop ends a sentence before white space; the marks of scripts that are written without
# spaces, and those of Arabic, Urdu, Hindi and Armenian, end one anywhere.
_SENTENCE = re.compile(r"[.!?…]+[\"'»”’)\]]*(?=\s)|[。！？｡؟۔।॥։]+[」』”’)\]]*|(?=\n)")
_WORD = re.compile(r"\s+")


def split(text: str, longest: int = LONGEST) -> Iterator[str]:
    """Yield the passages of a text in order.

    Args:
        text: any text.
        longest: how long a passage may be, in characters, at least 1.

    Returns:
        Passages without white space around them; together they are the whole text but for that.
        One that fits is one passage; a text of white space has none.
    """
    start = 0
    while len(text) - start > longest:
        stop = _stop(text, start, longest)
        yield from _trimmed(text[start:stop])
        start = _space_after(text, stop)
    yield from _trimmed(text[start:])


def _stop(text: str, start: int, longest: int) -> int:
    """Return where the passage from ``start`` ends: late, and as little in mid-thought as can be.

    A paragraph's end counts if it makes at least half a passage, a sentence's if a quarter; then
    comes the last white space, and only in a word without end a place inside it.
    """
    last = start + longest
    for kind, least in ((_PARAGRAPH, longest // 2), (_SENTENCE, longest // 4)):
        ends = [match.end() for match in kind.finditer(text, start, last + 2)]
        fitting = [end for end in ends if start + least < end <= last]
        if fitting:
            return fitting[-1]
    spaces = [match.start() for match in _WORD.finditer(text, start + 1, last + 1)]
    return spaces[-1] if spaces else last


def _space_after(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def _trimmed(text: str) -> Iterator[str]:
    inner = text.strip()
    if inner:
        yield inner

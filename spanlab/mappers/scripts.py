"""Which characters belong together: scripts without spaces, combining marks, joined emoji."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from spanlab.labels import Extent

# Han with its radicals and extensions, kana, bopomofo, Thai, Lao, Tibetan, Burmese, Khmer,
# Tai and Javanese scripts: writing in which a space does not part words.
UNSPACED: Final = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf"
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua980-\ua9df\ua9e0-\ua9ff\uaa60-\uaadf\uf900-\ufaff\uff66-\uff9f"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
_JOINER: Final = "\u200d"
_MODIFIERS: Final = frozenset(
    "\ufe0e\ufe0f\u200d\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
)
_FLAGS: Final = frozenset(map(chr, range(0x1F1E6, 0x1F200)))  # two of them make a flag
_TAGS: Final = frozenset(map(chr, range(0xE0020, 0xE0080)))


def dependents(text: str) -> frozenset[str]:
    """Return the characters of ``text`` that never stand alone: marks, joiners, modifiers."""
    return frozenset(
        c
        for c in set(text)
        if c in _MODIFIERS or c in _TAGS or unicodedata.category(c).startswith("M")
    )


def whole(text: str, extents: Sequence[Extent]) -> list[Extent]:
    """Join touching ``extents`` (in order, without overlap) that cut through one visible character.

    A combining mark stays with its letter, an emoji with its skin tone and with what a zero-width
    joiner ties to it, and the two letters of a flag stay together.
    """
    if text.isascii():
        return list(extents)
    marks = dependents(text)
    joined: list[Extent] = []
    flags = 0  # letters of flags at the end of the last extent
    for start, end in extents:
        flag = text[start] in _FLAGS
        if joined and joined[-1].end == start:
            tied = text[start] in marks or text[start - 1] == _JOINER or (flag and flags % 2 == 1)
            if tied:
                joined[-1] = Extent(joined[-1].start, end)
                flags += flag
                continue
        joined.append(Extent(start, end))
        flags = int(flag)
    return joined

"""Words and sentences of a text, by the rules of its language, as exact offsets."""

from __future__ import annotations

import re

from spanlab.labels import Extent


def tokens(text: str, lang: str) -> list[Extent]:
    """Return the words and punctuation marks of ``text``; whitespace belongs to none.

    Args:
        text: any text.
        lang: BCP 47 tag, for example ``en``, ``zh-Hant`` or ``und``.
    """
    return [Extent(*match.span()) for match in re.finditer(r"\w+|[^\w\s]", text)]


def sentences(text: str, lang: str) -> list[Extent]:
    """Return the sentences of ``text`` without the whitespace around them.

    Args:
        text: any text.
        lang: BCP 47 tag, for example ``en``, ``zh-Hant`` or ``und``.
    """
    found = re.finditer(r"\S[^.!?。！？।؟۔\n]*[.!?。！？।؟۔]*", text)
    return [Extent(match.start(), match.start() + len(match[0].rstrip())) for match in found]

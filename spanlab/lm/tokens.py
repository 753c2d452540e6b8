"""How many tokens a text has, about."""

from __future__ import annotations

# Rules of thumb for byte-pair encodings: about four letters of an alphabet make one token,
# and a character of a script without spaces is about one.
LETTERS_PER_TOKEN = 4.0
_WIDE_FROM = 0x2E80  # CJK radicals; the scripts above are written without spaces


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has; 0 for an empty one."""
    if text.isascii():
        return round(len(text) / LETTERS_PER_TOKEN)
    wide = sum(1 for character in text if ord(character) >= _WIDE_FROM)
    return wide + round((len(text) - wide) / LETTERS_PER_TOKEN)

"""Messages in a terminal: options stand where pages have fields."""

from __future__ import annotations

import re
from typing import Final

_OPTIONS: Final = (
    (re.compile(r"\bset the language\b"), "name it: --lang"),
    (re.compile(r"(?<!-)\bencoding (?=[\w-]+ (?:or|reads) )"), "--encoding "),
)


def in_a_terminal(message: str) -> str:
    """Return a message with the command's option where a page has a field of that name."""
    for said, option in _OPTIONS:
        message = said.sub(option, message)
    return message

"""Which of many texts stand in another one."""

from __future__ import annotations

import re
from typing import Any, Final

START: Final = 8  # characters by which a text is looked for in others
LEAST: Final = 20  # bytes of a text that is in another by no chance


class Texts:
    """Texts of several owners; finds which of them are in another, looking at each letter once."""

    def __init__(self) -> None:
        self._by_start: dict[str, list[tuple[str, Any]]] = {}

    def add(self, text: str, owner: Any) -> None:
        """Add a text; a blank one is in none."""
        if text := text.strip():
            self._by_start.setdefault(text[:START], []).append((text, owner))

    def inside(self, text: str, least: int = LEAST) -> dict[str, list[Any]]:
        """Return the texts that are all of this one or a line of it, or a part of so many bytes.

        With each stands whose it is.
        """
        text, inside = text.strip(), dict[str, list[Any]]()
        starts = {text[at : at + START] for at in range(max(1, len(text) - START + 1))}
        for start in starts & self._by_start.keys():
            for known, owner in self._by_start[start]:
                is_long = len(known.encode()) >= least
                if known == text or (known in text if is_long else _is_line(known, text)):
                    inside.setdefault(known, []).append(owner)
        return inside

    def owners(self, text: str, least: int = LEAST) -> set[Any]:
        """Return whose these texts are."""
        return {owner for owners in self.inside(text, least).values() for owner in owners}


def _is_line(known: str, text: str) -> bool:
    """Say whether a short text is all of a line, maybe behind a mark such as "[1]"."""
    return re.search(rf"^\W*(?:\d+\W+)?{re.escape(known)}\W*$", text, re.MULTILINE) is not None

"""Which of the evidence about an entity a claim is shown: what speaks of it, within bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from spanlab.storage.memory_entry import StoredEntry
from spanlab.text import terms

MOST: Final = 8  # entries in a prompt
ROOM: Final = 4_000  # characters of all of them together


def chosen(
    entries: Sequence[StoredEntry], claim: str, *, most: int = MOST, room: int = ROOM
) -> list[StoredEntry]:
    """Choose what a claim is shown of what the memory holds about its entities.

    Args:
        entries: what is kept, in any number.
        claim: the claim.
        most: entries at most.
        room: characters of their texts together; a longer first one is shown alone, cut.

    Returns:
        Pinned entries first, then those that share most with the claim, rare words counting more,
        of equals the newest.
    """
    wanted = frozenset(terms(claim))
    held = [wanted.intersection(terms(each.entry.text)) for each in entries]
    spread = Counter(word for words in held for word in words)
    worth = [math.fsum(math.log1p(len(entries) / spread[word]) for word in words) for words in held]
    order = sorted(
        range(len(entries)),
        key=lambda at: (not entries[at].pinned, -worth[at], -entries[at].entry.at, at),
    )
    found: list[StoredEntry] = []
    for at in order:
        if len(found) == most:
            break
        size = len(entries[at].entry.text)
        if size <= room or not found:
            found.append(entries[at])
            room -= size
    return found

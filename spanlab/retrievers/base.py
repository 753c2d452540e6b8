"""What every retriever is: something with a name that finds passages for an item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spanlab.schema import Item, Passage


@dataclass(frozen=True)
class Found:
    """What a retriever was asked and what it found; both may be empty."""

    queries: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()


class Retriever(Protocol):
    """Finds passages to judge an answer by; it keeps no state between items and may be shared."""

    @property
    def name(self) -> str:
        """Its identity with its configuration, such as ``bm25:wiki`` or ``web:sonar-pro+claims``.

        What it found is stored with the item under this name, and is not asked for again.
        """
        ...

    async def retrieve(self, item: Item) -> Found:
        """Find passages for ``item``, best first.

        Returns:
            What was asked and found; no passages if there are none.

        Raises:
            SpanlabError: it could not look; nothing may be stored then.
        """
        ...

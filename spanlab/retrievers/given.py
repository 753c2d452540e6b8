"""The passages that an item came with, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from spanlab.retrievers.base import Found, Query

NAME = "given"


@dataclass(frozen=True)
class Given:
    """The retriever that looks nowhere: detectors judge by the passages that an item has."""

    name: str = NAME

    async def search(self, query: Query) -> Found:
        """Find nothing; ``ensure`` does not even ask."""
        return Found()

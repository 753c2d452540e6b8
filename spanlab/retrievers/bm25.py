"""Searching a local corpus: BM25 over passages, from an index on disk.

Robertson & Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond, in the
variant and with the constants of Lucene as bm25s has them (k1 = 1.5, b = 0.75).
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path

from spanlab.retrievers.base import PER_SEARCH, RetrievedPassages, SearchQuery
from spanlab.retrievers.index import IndexManifest, PassageIndex
from spanlab.schema import Passage


class BM25:
    """Finds the passages of a corpus that share the rarest words with a query."""

    def __init__(self, index: PassageIndex, name: str, k: int) -> None:
        self._index = index
        self._k = k
        self.name = name

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        """Search the corpus; passages that are too new for the query take nobody's place."""
        return RetrievedPassages((query.text,), await asyncio.to_thread(self._search, query))

    def _search(self, query: SearchQuery) -> tuple[Passage, ...]:
        wanted = looked_at = query.k or self._k
        while True:
            hits = self._index.search(query.text, looked_at)
            admitted = [hit.passage for hit in hits if query.admits(hit.passage)]
            if len(admitted) >= wanted or len(hits) < looked_at:
                return tuple(admitted[:wanted])
            looked_at *= 4


def bm25(index: Path, k: int = PER_SEARCH) -> BM25:
    """Return the retriever that searches an index.

    Its name holds the fingerprint of the corpus: passages of another state of it are not taken
    for passages of this one.

    Args:
        index: the directory that ``spanlab index`` wrote.
        k: how many passages it finds at most, at least 1.

    Raises:
        InputError: there is no index there, or it is damaged.
    """
    folder = index.resolve()
    fingerprint = IndexManifest.read(folder).fingerprint
    called = "".join(letter for letter in folder.name if letter.isprintable())[:100]
    name = f"bm25:{called}@{fingerprint[:8]}" + (f"/{k}" if k != PER_SEARCH else "")
    return BM25(_opened(folder, fingerprint), name, k)


@lru_cache(maxsize=8)
def _opened(folder: Path, _fingerprint: str) -> PassageIndex:
    """Open each index once per process; one that was built anew has another fingerprint."""
    return PassageIndex(folder)

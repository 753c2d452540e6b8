"""Searching local documents: BM25 over an index on disk, or over AVeriTeC's knowledge store.

Robertson & Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond, in the
variant and with the constants of Lucene as bm25s has them (k1 = 1.5, b = 0.75).

Schlichtkrull et al. (2023), AVeriTeC: A Dataset for Real-world Claim Verification with Evidence
from the Web: a folder with a file of documents for every claim, found before its date. Each file
becomes an index when its claim is first searched for, and is kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from functools import lru_cache
from pathlib import Path

from spanlab.base.errors import InputError
from spanlab.base.runtime import SingleFlight
from spanlab.schema import Passage
from spanlab.search.base import PER_SEARCH, RetrievedPassages, SearchQuery
from spanlab.search.index import MANIFEST, IndexManifest, PassageIndex, build


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
        k = looked_at = query.k or self._k
        while True:
            hits = self._index.search(query.text, looked_at)
            admitted = [hit.passage for hit in hits if query.admits(hit.passage)]
            if len(admitted) >= k or len(hits) < looked_at:
                return tuple(admitted[:k])
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
    return BM25(_open_index(folder, fingerprint), name, k)


@lru_cache(maxsize=8)
def _open_index(folder: Path, _fingerprint: str) -> PassageIndex:
    """Open each index once per process; one that was built anew has another fingerprint."""
    return PassageIndex(folder)


_COUNTED = re.compile(r"claim-(\d+)")  # the id of a claim that came without one


class KnowledgeStore:
    """Finds the best passages among the documents of a query's own claim.

    Args:
        folder: has ``ID.json`` for the claim with that id, or ``N.json`` for the claim numbered N,
            counted from 0, as the shared task has it: JSON Lines with ``url`` and ``url2text``.
        indexes: where the indexes are kept.
        k: how many passages it finds at most, at least 1.

    Raises:
        InputError: there is no such folder.
    """

    def __init__(self, folder: Path, indexes: Path, k: int = PER_SEARCH) -> None:
        if not folder.is_dir():
            raise InputError("there is no such folder", file=folder, expected="a knowledge store")
        self._folder, self._indexes, self._k = folder.resolve(), indexes, k
        self._building: SingleFlight[None] = SingleFlight()
        called = "".join(letter for letter in self._folder.name if letter.isprintable())[:100]
        self.name = f"averitec:{called}" + (f"/{k}" if k != PER_SEARCH else "")

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        """Search the documents of the item that the query names."""
        documents = self._documents(query.item or "")
        state = documents.stat()
        named = f"{documents}\n{state.st_size}\n{state.st_mtime_ns}"
        index = self._indexes / hashlib.sha256(named.encode()).hexdigest()[:24]
        if not (index / MANIFEST).is_file():
            await self._building.join(index, lambda: asyncio.to_thread(_build, documents, index))
        return await bm25(index, self._k).search(query)

    def _documents(self, item: str) -> Path:
        counted = _COUNTED.fullmatch(item)
        names = [item] if counted is None else [item, str(int(counted[1]) - 1)]
        for name in names:
            path = self._folder / f"{name}.json"
            if path.parent == self._folder and path.is_file():
                return path
        raise InputError(
            "the knowledge store has no documents for this claim",
            file=self._folder,
            found=item,
            expected=" or ".join(f"a file {name}.json" for name in names),
        )


def _build(documents: Path, index: Path) -> None:
    try:
        build(documents, index)
    except InputError:
        if not (index / MANIFEST).is_file():  # else another process was quicker
            raise

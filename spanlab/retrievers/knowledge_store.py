"""Searching AVeriTeC's knowledge store: a folder with a file of documents for every claim.

Schlichtkrull et al. (2023), AVeriTeC: A Dataset for Real-world Claim Verification with Evidence
from the Web. The documents of a claim were found before its date. Each file becomes an index
(``bm25``) when its claim is first searched for, and is kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path

from spanlab.errors import InputError
from spanlab.retrievers.base import PER_SEARCH, RetrievedPassages, SearchQuery
from spanlab.retrievers.bm25 import bm25
from spanlab.retrievers.building import build
from spanlab.retrievers.index import MANIFEST
from spanlab.single_flight import SingleFlight

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

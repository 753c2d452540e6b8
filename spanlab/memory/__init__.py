"""The evidence memory of a database: what detectors keep for later claims, and who sees it."""

from __future__ import annotations

import time
from functools import cache
from threading import Lock
from typing import Final

from spanlab.base.settings import Settings
from spanlab.detection.memory import EvidenceMemory, MemoryChoice
from spanlab.memory.store import MemoryStore


def memory(settings: Settings, choice: MemoryChoice) -> EvidenceMemory:
    """Return the memory of a database, used as chosen.

    Raises:
        UsageError: the database URL is none, or its driver is not installed.
        StoreError: the database cannot be used.
    """
    if choice.mode == "off":
        return EvidenceMemory(None, choice)
    with _opening:
        return EvidenceMemory(_opened(settings.database_url, settings.model_dump_json()), choice)


@cache
def _opened(url: str, written: str) -> MemoryStore:
    settings = Settings.model_validate_json(written)
    store = MemoryStore.open(settings.model_copy(update={"database_url": url}))
    store.sweep(time.time())
    return store


_opening: Final = Lock()  # two threads that open one at the same time get the same

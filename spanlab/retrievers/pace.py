"""How soon one search may follow another, for services that take only so many a minute."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import cache
from threading import Lock


@dataclass
class SearchPace:
    """Spaces the searches of this process evenly; any number of threads and loops may share it.

    Libraries for this (aiolimiter, limits) hold for one event loop or want a store beside it.
    """

    seconds: float  # from one search to the next
    _next: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    async def turn(self) -> None:
        """Wait until the next search may begin."""
        with self._lock:
            now = time.monotonic()
            begins = max(self._next, now)
            self._next = begins + self.seconds
        await asyncio.sleep(begins - now)


@cache
def pace_of(host: str, rate: float) -> SearchPace:
    """Return the pace of a service, the same for all that ask it; ``rate`` is searches a minute."""
    return SearchPace(60.0 / rate)

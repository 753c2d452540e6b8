"""Claims about the same entity at the same time: the first one looks, the others wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from threading import Lock


class Turns:
    """Who is gathering evidence about which entity, in any thread and event loop of this process.

    Without them a hundred claims about one entity that begin together would all search for it,
    because none of them has kept anything yet.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._gathering: dict[str, Future[None]] = {}

    @asynccontextmanager
    async def turn(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """Wait until nobody gathers evidence about any of these, and let others wait meanwhile.

        Whoever has waited for an entity is not waited for because of it: what the first one could
        not find is then looked for by all at once.
        """
        wanted, waited = frozenset(keys), frozenset[str]()
        ended: Future[None] = Future()
        ended.set_running_or_notify_cancel()  # nobody who waits can cancel it
        while True:
            with self._lock:
                new = wanted - waited
                busy = {key: self._gathering[key] for key in new & self._gathering.keys()}
                if not busy:
                    mine = new
                    self._gathering.update(dict.fromkeys(mine, ended))
                    break
            for other in set(busy.values()):
                await asyncio.wrap_future(other)
            waited |= busy.keys()
        try:
            yield
        finally:
            with self._lock:
                for key in mine:
                    del self._gathering[key]
            ended.set_result(None)

"""What serves in an event loop in a thread of its own, for as long as a ``with`` block runs."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

_ROUNDS = 10  # of the loop, after it is closed, for connections that came in the last moment


class InBackground(ABC):
    """Opens when the block begins and closes when it ends, both in the thread's loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @abstractmethod
    async def _open(self) -> None:
        """Begin to serve."""

    @abstractmethod
    async def _close(self) -> None:
        """Serve no more; whoever joins after that is turned away."""

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._open())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._close())
        self._loop.run_until_complete(_settle())
        self._loop.close()


async def _settle() -> None:
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)

"""What serves in an event loop in a thread of its own, for as long as a ``with`` block runs."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future
from types import TracebackType
from typing import Self

_ROUNDS = 10  # of the loop, after it is closed, for connections that came in the last moment


class InBackground(ABC):
    """Opens when the block begins and closes when it ends, both in the thread's loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._opened = Future[None]()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._opened.result()
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
        """Begin to serve; an error, of a taken port say, is raised where the block begins."""

    @abstractmethod
    async def _close(self) -> None:
        """Serve no more, even if it never began; whoever joins after that is turned away."""

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        refused = None
        try:
            self._loop.run_until_complete(self._open())
        except Exception as error:  # noqa: BLE001 - raised where the block begins
            refused = error
        else:
            self._opened.set_result(None)
            self._loop.run_forever()
        self._loop.run_until_complete(self._close())
        self._loop.run_until_complete(_settle())
        self._loop.close()
        if refused is not None:
            self._opened.set_exception(refused)


async def _settle() -> None:
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)

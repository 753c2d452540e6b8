"""One event loop in a thread of its own, for calls from threads that have none.

All blocking calls share it, so that models keep their open connections; a notebook's own loop is
not touched.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import Future
from functools import cache
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine in the background event loop, with the calling thread's context."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def ahead(work: Iterable[Coroutine[Any, Any, T]], count: int) -> Iterator[Future[T]]:
    """Yield the futures of coroutines in order, with ``count`` of them, 1 or more, begun ahead.

    What is begun and not yet yielded is cancelled when the iterator is closed.
    """
    rest = iter(work)
    begun: deque[Future[T]] = deque()
    try:
        while True:
            begun.extend(map(submit, islice(rest, count - len(begun))))
            if not begun:
                return
            yield begun.popleft()
    finally:
        for future in begun:
            future.cancel()


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the background event loop and wait for its result.

    If the wait is interrupted (Ctrl+C), the coroutine is cancelled.

    Raises:
        RuntimeError: called from a coroutine that itself runs in the background loop.
        BaseException: whatever the coroutine raised.
    """
    if asyncio._get_running_loop() is _loop():
        work.close()
        raise RuntimeError("a blocking call inside a coroutine that a blocking call started")
    running = submit(work)
    try:
        return running.result()
    finally:
        running.cancel()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Start the loop, once; its connections are worth keeping for the process's whole life."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="spanlab-background", daemon=True).start()
    return loop

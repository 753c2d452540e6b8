"""Waiting for a coroutine from code that is not asynchronous, whatever loop already runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the process's one background event loop.

    All blocking calls share that loop, so that models keep their open connections; a notebook's
    own loop is not touched.
    """
    return asyncio.run_coroutine_threadsafe(work, _loop())


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns, or raise what it raises; Ctrl+C cancels it.

    Raises:
        RuntimeError: called from a coroutine that itself runs on the background loop.
    """
    if asyncio._get_running_loop() is _loop():
        work.close()
        raise RuntimeError("a blocking call inside a coroutine that a blocking call started")
    future = submit(work)
    try:
        return future.result()
    except (KeyboardInterrupt, CancelledError):
        future.cancel()
        raise


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="spanlab models", daemon=True).start()
    return loop

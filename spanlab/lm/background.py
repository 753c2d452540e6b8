"""One event loop in a thread of its own, for calls from threads that have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_background(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the process's background event loop and wait for its result.

    It sees the context variables of the calling thread. If the wait is interrupted (Ctrl+C), the
    coroutine is cancelled.

    Args:
        work: the coroutine.

    Raises:
        BaseException: whatever the coroutine raised.
    """
    running = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return running.result()
    finally:
        running.cancel()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Start the loop, once; its connections are worth keeping for the process's whole life."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="spanlab-calls", daemon=True).start()
    return loop

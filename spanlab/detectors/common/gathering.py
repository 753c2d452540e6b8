"""Several model calls at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def together(*work: Coroutine[Any, Any, Any], at_once: int | None = None) -> list[Any]:
    """Run coroutines concurrently; the first error cancels the others.

    Args:
        work: what to run.
        at_once: how many run at the same time, at least 1; None for all of them.

    Returns:
        Their results in order; empty without work.

    Raises:
        Exception: the first error, as it was raised.
    """
    slots = asyncio.Semaphore(at_once or max(len(work), 1))

    async def run(each: Coroutine[Any, Any, Any]) -> Any:
        async with slots:
            return await each

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(each)) for each in work]
    except BaseExceptionGroup as errors:
        first = errors.exceptions[0]
        raise first from first.__cause__  # which says why; the group says nothing more
    finally:
        for each in work:
            each.close()  # those that an error kept from beginning
    return [task.result() for task in tasks]

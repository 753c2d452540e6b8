"""Several model calls at once, and what they found so far."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_REPORT: ContextVar[Callable[[int, int], Awaitable[None]] | None] = ContextVar(
    "report", default=None
)
_KEPT: ContextVar[list[object] | None] = ContextVar("kept", default=None)


def keep(result: T) -> T:
    """Keep an intermediate result for the trace of an item that a later call fails.

    Returns:
        The result itself. Outside of ``keeping``, as when a program is tuned, that is all.
    """
    kept = _KEPT.get()
    if kept is not None:
        kept.append(result)
    return result


@contextmanager
def keeping(results: list[object]) -> Iterator[None]:
    """Let ``keep`` append to ``results``, in this task and those that it starts."""
    token = _KEPT.set(results)
    try:
        yield
    finally:
        _KEPT.reset(token)


async def advance(done: int, total: int) -> None:
    """Tell whoever waits how many parts of an item are done; nobody may be waiting."""
    report = _REPORT.get()
    if report is not None:
        await report(done, total)


@contextmanager
def reporting(report: Callable[[int, int], Awaitable[None]]) -> Iterator[None]:
    """Let ``advance`` call ``report``, in this task and those that it starts."""
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)


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

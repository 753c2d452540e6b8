"""Trying again, so often and no more, and no sooner than the other side asks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from spanlab.errors import ModelError

_T = TypeVar("_T")
_FIRST_PAUSE = 0.5  # seconds; doubled after each attempt
_LONGEST_PAUSE = 30.0
_LONGEST_WAIT = 90.0  # an endpoint that asks for more is given up at once


@dataclass(frozen=True)
class Setback:
    """Why an attempt failed, whether another may help, and the seconds the endpoint asks for."""

    error: ModelError
    again: bool
    after: float | None = None


async def insist(
    attempt: Callable[[], Awaitable[_T]],
    judge: Callable[[Exception], Setback],
    retries: int,
    before: Callable[[], Awaitable[None]] | None = None,
) -> _T:
    """Make an attempt, and up to ``retries`` more where that may help.

    Args:
        attempt: makes one.
        judge: says what an exception of an attempt means.
        retries: how many may follow the first, at least 0.
        before: awaited before each attempt; what it raises ends them.

    Returns:
        What the first attempt that succeeds returns.

    Raises:
        ModelError: the last one's setback; never the exception itself, which may quote a key.
    """
    done = 0
    while True:
        if before is not None:
            await before()
        try:
            return await attempt()
        except Exception as error:  # noqa: BLE001 - judged, and raised as one of ours
            setback = judge(error)
        pause = pause_after(setback, done, retries)
        if pause is None:
            raise setback.error
        await asyncio.sleep(pause)
        done += 1


def pause_after(setback: Setback, done: int, retries: int) -> float | None:
    """Return the seconds to wait before another attempt, or None to give up.

    Args:
        setback: how the last attempt ended.
        done: how many retries there were before it.
        retries: how many there may be.
    """
    if not setback.again or done >= retries or (setback.after or 0.0) > _LONGEST_WAIT:
        return None
    if setback.after is not None:
        return setback.after * random.uniform(1.0, 1.1)
    pause: float = min(_FIRST_PAUSE * 2**done, _LONGEST_PAUSE)
    return pause * random.uniform(0.5, 1.0)


def seconds_of(retry_after: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, None without a usable one."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (when.astimezone(UTC) - datetime.now(UTC)).total_seconds())

"""Asking once what several want to know at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

from spanlab.errors import BudgetError

Answer = TypeVar("Answer")


class _AbandonedError(Exception):
    """Whoever was asking has been stopped: somebody else has to."""


class SingleFlight(Generic[Answer]):
    """Questions under way, in any thread and event loop of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: dict[Hashable, Future[Answer]] = {}

    async def join(self, key: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Wait for the answer that is under way, or ask.

        Args:
            key: the same for the same question.
            ask: gets the answer. It is called if nobody is asking, also if who was has been
                cancelled, or had no budget left: that says nothing of the next one's.

        Raises:
            Exception: what the one call of ``ask`` raised, for all who wait for it.
        """
        while True:
            with self._lock:
                answer = self._answers.get(key)
                mine = answer is None
                if answer is None:
                    answer = self._answers[key] = Future()
                    answer.set_running_or_notify_cancel()  # nobody who waits can cancel it
            if mine:
                return await self._ask(key, ask, answer)
            try:
                return await asyncio.wrap_future(answer)
            except _AbandonedError:
                continue

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[Answer]], answer: Future[Answer]) -> Answer:
        error: Exception = _AbandonedError()
        try:
            found = await ask()
        except BudgetError:
            raise
        except Exception as raised:
            error = raised
            raise
        else:
            answer.set_result(found)
            return found
        finally:
            with self._lock:
                del self._answers[key]
            if not answer.done():
                answer.set_exception(error)

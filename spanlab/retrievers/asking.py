"""Asking a retriever once for an item, however many detectors want to know."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from concurrent.futures import Future
from threading import Lock

from spanlab.passages import joined
from spanlab.retrievers.base import Found, Retriever
from spanlab.retrievers.given import NAME as GIVEN
from spanlab.schema import Item


async def ensure(item: Item, retriever: Retriever) -> Item:
    """Return the item with what ``retriever`` finds for it, asking only if nobody has before.

    Whoever asks for the same item while the answer is under way waits for that answer, in any
    thread and event loop of this process.

    Args:
        item: question, answer and the passages so far.
        retriever: who to ask. It is not asked if the item names it among its retrievals, found
            anything or not, nor if it only gives what the item has.

    Returns:
        The item with new passages appended and the retrieval noted.

    Raises:
        SpanlabError: the retriever could not look; the item stays as it is.
    """
    if retriever.name == GIVEN or any(each.retriever == retriever.name for each in item.retrievals):
        return item
    found = await _FLIGHTS.join(item, retriever)
    return joined(item, retriever.name, found.queries, found.passages)


class _AbandonedError(Exception):
    """Whoever was asking has been cancelled: somebody else has to."""


class _Flights:
    """Questions under way, each with the future of its answer."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: dict[Hashable, Future[Found]] = {}

    async def join(self, item: Item, retriever: Retriever) -> Found:
        """Wait for the answer that is under way for ``item``, or ask."""
        key = (retriever.name, item.id, item.lang, item.question, item.answer)
        while True:
            with self._lock:
                answer = self._answers.get(key)
                mine = answer is None
                if answer is None:
                    answer = self._answers[key] = Future()
                    answer.set_running_or_notify_cancel()  # nobody who waits can cancel it
            if mine:
                return await self._ask(item, retriever, key, answer)
            try:
                return await asyncio.wrap_future(answer)
            except _AbandonedError:
                continue

    async def _ask(
        self, item: Item, retriever: Retriever, key: Hashable, answer: Future[Found]
    ) -> Found:
        outcome: Found | BaseException = _AbandonedError()
        try:
            outcome = await retriever.retrieve(item)
        except Exception as error:
            outcome = error
            raise
        finally:
            with self._lock:
                del self._answers[key]
            if isinstance(outcome, Found):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)
        return outcome


_FLIGHTS = _Flights()

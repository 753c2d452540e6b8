"""Asking a retriever once for an item, however many detectors want to know."""

from __future__ import annotations

from spanlab.flights import Flights
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
    key = (retriever.name, item.id, item.lang, item.question, item.answer)
    found = await _FLIGHTS.join(key, lambda: retriever.retrieve(item))
    return joined(item, retriever.name, found.queries, found.passages)


_FLIGHTS: Flights[Found] = Flights()

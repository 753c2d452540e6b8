"""Asking a retriever: for an item or for a query, and each only once for an item."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from spanlab.retrievers.base import (
    QueryWriter,
    RetrievedPassages,
    Retriever,
    SearchQuery,
    question_of,
)
from spanlab.retrievers.given import GIVEN
from spanlab.schema import Item, Passage, Retrieval, joined
from spanlab.single_flight import SingleFlight


async def ensure(item: Item, retriever: Retriever, query: SearchQuery | None = None) -> Item:
    """Return the item with what ``retriever`` finds for it, searching only if nobody has before.

    Concurrent callers in any thread and event loop of this process share one search.

    Args:
        item: question, answer and the passages so far.
        retriever: who to ask; the one for given passages is never asked.
        query: what to search for; None for what the retriever searches an item by.

    Returns:
        The item with new passages appended and the retrieval noted, also where nothing was found;
        the item itself if the retriever was asked the same for it before.

    Raises:
        SpanlabError: the retriever could not look; the item stays as it is.
    """
    if retriever.name == GIVEN or retrieval_of(item, retriever, query) is not None:
        return item
    query = _unless_usual(item, retriever, query)
    if query is None:
        key = (retriever.name, item.id, item.lang, item.question, item.answer)
        found = await _SINGLE_FLIGHT.join(key, lambda: retrieve(item, retriever))
        noted = Retrieval(retriever=retriever.name, queries=found.queries)
    else:
        asked = replace(query, item=item.id)
        found = await _SINGLE_FLIGHT.join(
            (retriever.name, asked), lambda: _search(retriever, asked)
        )
        noted = Retrieval(
            retriever=retriever.name,
            query=query.text,
            k=query.k,
            before=query.before,
            queries=found.queries,
        )
    return joined(item, noted, found.passages)


def retrieval_of(
    item: Item, retriever: Retriever, query: SearchQuery | None = None
) -> Retrieval | None:
    """Return what is noted with an item of asking a retriever; None if it has not been asked.

    Args:
        item: the item.
        retriever: who may have been asked.
        query: for what; None for what the retriever searches an item by.
    """
    query = _unless_usual(item, retriever, query)
    asked = (None, None, None) if query is None else (query.text, query.k, query.before)
    return next((each for each in item.retrievals if each.key == (retriever.name, *asked)), None)


async def retrieve(item: Item, retriever: Retriever) -> RetrievedPassages:
    """Search for what an item is to be judged by.

    Args:
        item: the item; its question is searched for, or its answer where there is none, unless
            the retriever writes queries of its own.
        retriever: who is asked.

    Returns:
        All that was searched for and found: of several queries the best passage of each first.

    Raises:
        SpanlabError: one of the searches failed. All are waited for, so that what the others found
            is in the cache for the next try.
    """
    queries: tuple[SearchQuery, ...] = (question_of(item),)
    if isinstance(retriever, QueryWriter):
        queries = await retriever.queries(item)
    asking = (_search(retriever, replace(query, item=item.id)) for query in queries if query.text)
    answers = await asyncio.gather(*asking, return_exceptions=True)
    found: list[RetrievedPassages] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        found.append(answer)
    return RetrievedPassages(
        tuple(query for each in found for query in each.queries),
        _by_turns([each.passages for each in found]),
    )


async def _search(retriever: Retriever, query: SearchQuery) -> RetrievedPassages:
    found = await retriever.search(query)
    return replace(found, passages=tuple(filter(query.admits, found.passages)))


def _unless_usual(
    item: Item, retriever: Retriever, query: SearchQuery | None
) -> SearchQuery | None:
    """Return None for a query that is what the retriever searches the item by anyway."""
    if query is None or isinstance(retriever, QueryWriter):
        return query
    return None if replace(query, language=item.lang) == question_of(item) else query


def _by_turns(lists: Sequence[Sequence[Passage]]) -> tuple[Passage, ...]:
    rounds = zip_longest(*lists)
    return tuple(dict.fromkeys(each for turn in rounds for each in turn if each is not None))


_SINGLE_FLIGHT: SingleFlight[RetrievedPassages] = SingleFlight()

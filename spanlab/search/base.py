"""The protocol of retrievers, and searching for an item: the same query once at most."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import zip_longest
from typing import Final, Protocol, runtime_checkable

from spanlab.base.runtime import SingleFlight
from spanlab.schema import UNDETERMINED, Item, Passage, Retrieval, joined
from spanlab.search.results import latest_day

PER_SEARCH: Final = 5  # passages, unless somebody says otherwise


@dataclass(frozen=True)
class SearchQuery:
    """What to search for.

    ``language`` is the BCP 47 tag of ``text``. ``k`` is how many passages to find at most, None
    for the retriever's own number. ``before`` excludes what was published on that day or later.
    ``item`` is the id of the item that is searched for, for retrievers with documents of each item.

    A passage whose date says only a month or a year counts by its last day. One without a date, or
    with a date that cannot be read, stays: most corpora have no dates, and a detector that must be
    strict can drop such passages itself.
    """

    text: str
    language: str = UNDETERMINED
    k: int | None = None
    before: date | None = None
    item: str | None = None

    def admits(self, passage: Passage) -> bool:
        """Say whether a passage was published early enough, as far as its date tells."""
        published = latest_day(passage.date) if self.before and passage.date else None
        return published is None or self.before is None or published < self.before


@dataclass(frozen=True)
class RetrievedPassages:
    """What a retriever was asked and what it found; both may be empty."""

    queries: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()


class Retriever(Protocol):
    """Finds passages to judge an answer by; it keeps no state between queries and may be shared."""

    @property
    def name(self) -> str:
        """Its name with its configuration, such as ``bm25:wiki`` or ``web:sonar-pro+claims``.

        What it found is stored with the item under this name, and is not asked for again.
        """
        ...

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        """Find passages for a query, best first.

        Returns:
            The text that was searched for and what was found; no passages if there are none.

        Raises:
            SpanlabError: it could not look; nothing may be stored then.
        """
        ...


@runtime_checkable
class QueryWriter(Protocol):
    """A retriever that writes the queries for an item itself, instead of asking its question."""

    async def queries(self, item: Item) -> tuple[SearchQuery, ...]:
        """Return what to search for to judge an item's answer; at most one query for none."""
        ...


def question_of(item: Item) -> SearchQuery:
    """Return an item's question as a query, or its answer where there is no question."""
    return SearchQuery(item.question.strip() or item.answer.strip(), language=item.lang)


GIVEN = "given"


@dataclass(frozen=True)
class GivenPassages:
    """The retriever that looks nowhere: detectors judge by the passages that an item has."""

    name: str = GIVEN

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        """Find nothing; ``ensure`` does not even ask."""
        return RetrievedPassages()


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
        retrieved = await _SINGLE_FLIGHT.join(key, lambda: retrieve(item, retriever))
        noted = Retrieval(retriever=retriever.name, queries=retrieved.queries)
    else:
        item_query = replace(query, item=item.id)
        retrieved = await _SINGLE_FLIGHT.join(
            (retriever.name, item_query), lambda: _search(retriever, item_query)
        )
        noted = Retrieval(
            retriever=retriever.name,
            query=query.text,
            k=query.k,
            before=query.before,
            queries=retrieved.queries,
        )
    return joined(item, noted, retrieved.passages)


def retrieval_of(
    item: Item, retriever: Retriever, query: SearchQuery | None = None
) -> Retrieval | None:
    """Return the record of an earlier search for an item; None if there was none.

    Args:
        item: the item.
        retriever: who may have been asked.
        query: for what; None for what the retriever searches an item by.
    """
    query = _unless_usual(item, retriever, query)
    search = (None, None, None) if query is None else (query.text, query.k, query.before)
    return next(
        (retrieval for retrieval in item.retrievals if retrieval.key == (retriever.name, *search)),
        None,
    )


async def retrieve(item: Item, retriever: Retriever) -> RetrievedPassages:
    """Search for passages to judge an item by.

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
    results: list[RetrievedPassages] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        results.append(answer)
    return RetrievedPassages(
        tuple(query for retrieved in results for query in retrieved.queries),
        _by_turns([retrieved.passages for retrieved in results]),
    )


async def _search(retriever: Retriever, query: SearchQuery) -> RetrievedPassages:
    retrieved = await retriever.search(query)
    return replace(retrieved, passages=tuple(filter(query.admits, retrieved.passages)))


def _unless_usual(
    item: Item, retriever: Retriever, query: SearchQuery | None
) -> SearchQuery | None:
    """Return None for a query that is what the retriever searches the item by anyway."""
    if query is None or isinstance(retriever, QueryWriter):
        return query
    return None if replace(query, language=item.lang) == question_of(item) else query


def _by_turns(lists: Sequence[Sequence[Passage]]) -> tuple[Passage, ...]:
    rounds = zip_longest(*lists)
    return tuple(
        dict.fromkeys(passage for turn in rounds for passage in turn if passage is not None)
    )


_SINGLE_FLIGHT: SingleFlight[RetrievedPassages] = SingleFlight()

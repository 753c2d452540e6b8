"""What every retriever is: something with a name that finds passages for a query."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final, Protocol, runtime_checkable

from spanlab.retrievers.dates import latest_day
from spanlab.schema import UNDETERMINED, Item, Passage

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
        """Its identity with its configuration, such as ``bm25:wiki`` or ``web:sonar-pro+claims``.

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

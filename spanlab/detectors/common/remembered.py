"""What the memory of evidence gives to a claim, and what is kept of what the claim brought."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

from spanlab.detectors.common.modelled import Case, Modelled
from spanlab.detectors.common.relevance import relevant
from spanlab.memory import Memory, expires, passage_of
from spanlab.schema import Item, Passage, RecallStep, Retrieval, joined, merged
from spanlab.storage.memory_entry import MemoryEntry

MEMORY: Final = "memory"  # the retriever that what was recalled is noted under
GIVEN: Final = "given"  # the kind of what came with an item: it says nothing about other items
_QUERY: Final = 500  # characters of a query that are kept with what it found


class Observed(NamedTuple):
    """A passage, and what had found it: the query, the tool and the kind of source."""

    passage: Passage
    query: str
    tool: str
    kind: str


class Remembered:
    """The memory as one claim uses it.

    ``entities`` are those that were asked for. ``notes`` say of the item's passages that were
    recalled, by 0-based index and best first, when and how they were found.

    Args:
        memory: what is kept.
        detector: whose model judges the claim.
        case: the item, which gets the passages.
        claim: the claim.
    """

    def __init__(self, memory: Memory, detector: Modelled, case: Case, claim: str) -> None:
        self._memory, self._detector = memory, detector
        self._case, self.claim = case, claim
        self.entities: tuple[str, ...] = ()
        self.notes: dict[int, str] = {}

    async def recall(self, entities: Sequence[str], before: date | None = None) -> None:
        """Let the item have what is kept about some entities and was published before a day."""
        self.entities = tuple(entities)
        known = await self._memory.recall(self.entities, self.claim, before)
        if known:
            places = noted(self._case, MEMORY, self.claim, [passage_of(each) for each in known])
            self.notes = dict(zip(places, map(_told_by, known), strict=False))

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return the block in which other claims about the same entities wait."""
        return self._memory.turn(self.entities)

    def steps(self, number: int) -> list[RecallStep]:
        """Return the step that tells what was recalled for claim ``number``; none if nothing."""
        if not self.notes:
            return []
        passages, notes = tuple(self.notes), tuple(self.notes.values())
        return [RecallStep(entities=self.entities, passages=passages, notes=notes, claim=number)]

    async def keep(self, found: Iterable[Observed]) -> None:
        """Keep the sentences that speak of the claim, unless they came with the item."""
        if self._memory.keeps:
            entries = (self._entry(each) for each in found if each.kind != GIVEN)
            kept = [entry for entry in entries if entry is not None]
            await self._memory.keep(self.entities, kept)

    def _entry(self, found: Observed) -> MemoryEntry | None:
        passage, now = found.passage, time.time()
        places = relevant(passage.text, self.claim, self.entities, self._case.item.lang)
        if not places:
            return None
        return MemoryEntry(
            text=" ".join(passage.text[slice(*place)].strip() for place in places),
            title=passage.title,
            url=passage.url,
            date=passage.date,
            query=found.query[:_QUERY],
            tool=found.tool,
            kind=found.kind,
            model=self._detector.kit.lm().model,
            at=now,
            expires=expires(found.kind, now),
        )


def searched_for(item: Item, indices: Iterable[int]) -> Iterator[Observed]:
    """Yield those of an item's passages that a search has found, each once."""
    found = {
        index: each
        for each in item.retrievals
        if each.retriever != MEMORY
        for index in each.passages
    }
    for index in dict.fromkeys(indices):
        if index in found:
            query = " ".join(found[index].queries)
            yield Observed(item.passages[index], query, found[index].retriever, "search")


def noted(case: Case, retriever: str, query: str, found: Sequence[Passage]) -> tuple[int, ...]:
    """Note with the item what was asked and found; return where it stands there."""
    bare = case.item.model_copy(update={"retrievals": ()})
    more = joined(bare, Retrieval(retriever=retriever, query=query, queries=(query,)), found)
    case.item = merged(case.item, more).item
    return more.retrievals[-1].passages


def _told_by(entry: MemoryEntry) -> str:
    day = datetime.fromtimestamp(entry.at, UTC).date().isoformat()
    asked = f" for “{entry.query}”" if entry.query else ""
    return f"from memory: found on {day} by {entry.tool or 'hand'}{asked}"

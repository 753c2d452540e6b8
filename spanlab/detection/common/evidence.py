"""Sentences that speak of a claim: quoted, by date, recalled from the memory."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from spanlab.detection.common.model_detector import DetectionCase, ModelDetector
from spanlab.detection.memory import EvidenceMemory, expires, passage_of
from spanlab.schema import (
    Annotation,
    Evidence,
    Item,
    Passage,
    RecallStep,
    Retrieval,
    Span,
    Stance,
    Verdict,
    joined,
    merged,
)
from spanlab.schema.memory import MemoryEntry
from spanlab.search.results import latest_day
from spanlab.text.extents import Extent
from spanlab.text.facts import closest_sentence
from spanlab.text.terms import terms
from spanlab.text.tokens import sentences

CLOSE = 0.3  # similarity below which a sentence has nothing to do with the span
_STANCES: Final[dict[Verdict | None, Stance]] = {"supported": "supports", "refuted": "refutes"}


def explained(item: Item, annotation: Annotation, read: Sequence[int]) -> Annotation:
    """Put the closest sentence of the passages beside every span and every claim.

    Args:
        item: the item with its passages.
        annotation: what was said of it, without evidence.
        read: indices of the passages that the detector read.

    Returns:
        The annotation with evidence; as it is where no passage was read. A claim's evidence has
        the stance of its verdict, a span's is only the closest.
    """
    if not read:
        return annotation
    claims = tuple(
        claim.model_copy(
            update={"evidence": evidence(item, read, claim.text, stance=stance_of(claim.verdict))}
        )
        for claim in annotation.claims
    )
    spans = _beside(item, annotation.spans, read)
    return annotation.model_copy(update={"spans": spans, "claims": claims})


def _beside(item: Item, spans: Sequence[Span], read: Sequence[int]) -> tuple[Span, ...]:
    parts = sentences(item.answer, item.lang) if spans else ()
    near: dict[str, tuple[Evidence, ...]] = {}  # by sentence: most hold several spans
    beside = []
    for span in spans:
        around = _around(parts, span.start, span.end)
        text = item.answer[around.start : around.end]
        if text not in near:
            near[text] = evidence(item, read, text)
        beside.append(span.model_copy(update={"evidence": near[text]}))
    return tuple(beside)


def _around(parts: Sequence[Extent], start: int, end: int) -> Extent:
    """Return the characters of the sentences (``parts``) that ``[start, end)`` touches."""
    touched = [part for part in parts if part.start < end and start < part.end]
    if not touched:
        return Extent(start, end)
    return Extent(min(start, touched[0].start), max(end, touched[-1].end))


def evidence(
    item: Item, passages: Sequence[int], text: str, *, stance: Stance = "closest"
) -> tuple[Evidence, ...]:
    """Return the sentence of the passages that comes closest to ``text``.

    Args:
        item: the item with its passages.
        passages: indices of those that the detector read.
        text: the sentence of the answer, or the fact, that is in doubt.
        stance: what the sentence does to it.

    Returns:
        One piece of evidence; none if nothing comes close.
    """
    texts = [item.passages[index].text for index in passages]
    closest = closest_sentence(texts, text, lang=item.lang)
    if closest is None or closest.score < CLOSE:
        return ()
    return (quote(item, passages[closest.passage], Extent(closest.start, closest.end), stance),)


def quote(
    item: Item, passage: int, place: Extent, stance: Stance, note: str | None = None
) -> Evidence:
    """Return characters of a passage (its 0-based index) as evidence."""
    start, end = place
    text = item.passages[passage].text[start:end]
    return Evidence(passage=passage, start=start, end=end, text=text, stance=stance, note=note)


def stance_of(verdict: Verdict | None) -> Stance:
    """Return what evidence does to a claim that it led to this verdict on."""
    return _STANCES.get(verdict, "closest")


MEMORY: Final = "memory"  # the retriever that what was recalled is noted under
GIVEN: Final = "given"  # the kind of what came with an item: it says nothing about other items
_QUERY: Final = 500  # characters of a query that are kept with what it found


class ObservedPassage(NamedTuple):
    """A passage, and what had found it: the query, the tool and the kind of source."""

    passage: Passage
    query: str
    tool: str
    kind: str


class ClaimMemory:
    """The memory as one claim uses it.

    ``entities`` are those that were asked for. ``notes`` say of the item's passages that were
    recalled, by 0-based index and best first, when and how they were found.

    Args:
        memory: what is kept.
        detector: whose model judges the claim.
        case: the item, which gets the passages.
        claim: the claim.
    """

    def __init__(
        self, memory: EvidenceMemory, detector: ModelDetector, case: DetectionCase, claim: str
    ) -> None:
        self._memory, self._detector = memory, detector
        self._case, self.claim = case, claim
        self.entities: tuple[str, ...] = ()
        self.notes: dict[int, str] = {}

    async def recall(self, entities: Sequence[str], before: date | None = None) -> None:
        """Let the item have what is kept about some entities and was published before a day."""
        self.entities = tuple(entities)
        entries = await self._memory.recall(self.entities, self.claim, before)
        if entries:
            places = noted(self._case, MEMORY, self.claim, [passage_of(entry) for entry in entries])
            self.notes = dict(zip(places, map(_told_by, entries), strict=False))

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return the block in which other claims about the same entities wait."""
        return self._memory.turn(self.entities)

    def steps(self, number: int) -> list[RecallStep]:
        """Return the step that tells what was recalled for claim ``number``; none if nothing."""
        if not self.notes:
            return []
        passages, notes = tuple(self.notes), tuple(self.notes.values())
        return [RecallStep(entities=self.entities, passages=passages, notes=notes, claim=number)]

    async def keep(self, passages: Iterable[ObservedPassage]) -> None:
        """Keep the sentences that speak of the claim, unless they came with the item."""
        if self._memory.keeps:
            entries = (self._entry(passage) for passage in passages if passage.kind != GIVEN)
            kept = [entry for entry in entries if entry is not None]
            await self._memory.keep(self.entities, kept)

    def _entry(self, observed: ObservedPassage) -> MemoryEntry | None:
        passage, now = observed.passage, time.time()
        places = relevant(passage.text, self.claim, self.entities, self._case.item.lang)
        if not places:
            return None
        return MemoryEntry(
            text=" ".join(passage.text[slice(*place)].strip() for place in places),
            title=passage.title,
            url=passage.url,
            date=passage.date,
            query=observed.query[:_QUERY],
            tool=observed.tool,
            kind=observed.kind,
            model=self._detector.kit.lm().model,
            at=now,
            expires=expires(observed.kind, now),
        )


def searched_for(item: Item, indices: Iterable[int]) -> Iterator[ObservedPassage]:
    """Yield those of an item's passages that a search has found, each once."""
    retrievals = {
        index: retrieval
        for retrieval in item.retrievals
        if retrieval.retriever != MEMORY
        for index in retrieval.passages
    }
    for index in dict.fromkeys(indices):
        if index in retrievals:
            query = " ".join(retrievals[index].queries)
            yield ObservedPassage(
                item.passages[index], query, retrievals[index].retriever, "search"
            )


def noted(
    case: DetectionCase, retriever: str, query: str, passages: Sequence[Passage]
) -> tuple[int, ...]:
    """Note with the item what was asked and found; return its place there."""
    bare = case.item.model_copy(update={"retrievals": ()})
    more = joined(bare, Retrieval(retriever=retriever, query=query, queries=(query,)), passages)
    case.item = merged(case.item, more).item
    return more.retrievals[-1].passages


def _told_by(entry: MemoryEntry) -> str:
    day = datetime.fromtimestamp(entry.at, UTC).date().isoformat()
    search_text = f" for “{entry.query}”" if entry.query else ""
    return f"from memory: found on {day} by {entry.tool or 'hand'}{search_text}"


MOST: Final = 3  # sentences of a passage
_SHARE: Final = 0.5  # of a name's words, that many of which a sentence must hold
_SHORT: Final = 3  # letters of the shortest word that tells one name from another


def relevant(
    text: str, claim: str, entities: Sequence[str], lang: str, most: int = MOST
) -> tuple[Extent, ...]:
    """Return the sentences of a text that speak of a claim.

    They name one of its entities, by half of its words at least, and share another word with the
    claim; without entities they share two words with it.

    Args:
        text: what was observed.
        claim: the claim.
        entities: its subjects and objects.
        lang: BCP 47 tag of the text.
        most: how many sentences at most.

    Returns:
        Those that share most with the claim, rare words counting more, in the order of the text;
        empty if the text has nothing to do with it.
    """
    wanted = _words(claim)
    names = [name for name in map(_words, entities) if name]
    places = sentences(text, lang)
    held = [_words(text[slice(*place)]) for place in places]
    spread = Counter(word for words in held for word in words & wanted)
    worth: dict[int, float] = {}
    for number, words in enumerate(held):
        shared = words & wanted
        named = any(len(words & name) >= _SHARE * len(name) for name in names) or not names
        if named and len(shared) >= min(2, len(wanted)):
            worth[number] = math.fsum(math.log1p(len(held) / spread[word]) for word in shared)
    best = sorted(worth, key=lambda number: (-worth[number], number))[:most]
    return tuple(places[number] for number in sorted(best))


def _words(text: str) -> frozenset[str]:
    words = terms(text)
    return frozenset(word for word in words if len(word) >= _SHORT or not word.isascii()) or (
        frozenset(words)
    )


_DAY_FIRST = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})")


def about(item: Item, claim: str) -> str:
    """Return a claim with who said it and when, as far as the item's ``meta`` says."""
    speaker, day = item.meta.get("speaker"), item.meta.get("claim_date") or item.meta.get("date")
    circumstances = [f"by {speaker}" if speaker else "", f"on {day}" if day else ""]
    circumstance = " ".join(filter(None, circumstances))
    return f"{claim} (said {circumstance})" if circumstance else claim


def published_before(item: Item) -> date | None:
    """Return the day after a claim's, before which evidence must be published; None if unknown."""
    written = str(item.meta.get("claim_date") or item.meta.get("date") or "")
    day_first = _DAY_FIRST.fullmatch(written.strip())
    try:
        day = (
            date(int(day_first[3]), int(day_first[2]), int(day_first[1]))
            if day_first
            else latest_day(written)
        )
    except ValueError:
        return None
    return None if day is None else day + timedelta(days=1)

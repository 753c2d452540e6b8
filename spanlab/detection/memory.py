"""What a run recalls and keeps, call by call, and the turns of claims about one entity.

names ──── when two names are one entity
ranking ── which of the evidence about an entity a claim is shown
memory ─── recall and keep, as a run may; one call of a tool for all who ask the same
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cache
from threading import Lock
from typing import Final, Literal, Protocol

from pydantic import JsonValue, TypeAdapter

from spanlab.base.errors import UsageError
from spanlab.base.fields import FrozenModel
from spanlab.base.runtime import SingleFlight
from spanlab.base.settings import Settings
from spanlab.detection.entities import chosen, grams, key_of, keys_of, looked_up, near
from spanlab.schema import Passage
from spanlab.schema.memory import MemoryEntry, StoredEntry
from spanlab.search.base import SearchQuery


class EntityTurns:
    """Who is gathering evidence about which entity, in any thread and event loop of this process.

    Without them a hundred claims about one entity that begin together would all search for it,
    because none of them has kept anything yet.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._gathering: dict[str, Future[None]] = {}

    @asynccontextmanager
    async def turn(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """Wait until nobody gathers evidence about any of these, and let others wait meanwhile.

        A call that waited for an entity is not waited for because of it: what the first one could
        not find is then looked for by all at once.
        """
        wanted, waited = frozenset(keys), frozenset[str]()
        ended: Future[None] = Future()
        ended.set_running_or_notify_cancel()  # nobody who waits can cancel it
        while True:
            with self._lock:
                new = wanted - waited
                busy = {key: self._gathering[key] for key in new & self._gathering.keys()}
                if not busy:
                    mine = new
                    self._gathering.update(dict.fromkeys(mine, ended))
                    break
            for other in set(busy.values()):
                await asyncio.wrap_future(other)
            waited |= busy.keys()
        try:
            yield
        finally:
            with self._lock:
                for key in mine:
                    del self._gathering[key]
            ended.set_result(None)


Mode = Literal["on", "read-only", "off"]

_DAYS: Final[Mapping[str, float | None]] = {
    "search": 30,
    "page": 30,
    "wikipedia": 90,
    "papers": 365,
    "corpus": None,
    "tool": 30,
}

_LONGEST: Final = 2_000  # characters of an entry
_NEVER: Final = 1e12  # seconds since 1970
_PAUSE: Final = 0.1  # seconds between two looks whether another process has got an answer
_NEAREST: Final = 2  # near names that are recalled of one that nothing is kept under
_DAY: Final = 86_400.0
_PASSAGES: Final = TypeAdapter(tuple[Passage, ...])


class MemoryChoice(FrozenModel):
    """How a run uses the memory.

    ``scope`` is a name: who gives the same one shares the memory. ``as_of`` recalls what was kept
    until the end of that day (UTC), and keeps nothing.
    """

    mode: Mode = "on"
    scope: str = ""
    as_of: date | None = None


class _EntryStore(Protocol):
    """Where entries are kept; see ``spanlab.memory.store.MemoryStore``."""

    def keys_in_use(self, scope: str, keys: Iterable[str]) -> dict[str, tuple[str, ...]]: ...

    def similar(self, scope: str, grams: Iterable[str]) -> list[str]: ...

    def recall(self, scope: str, keys: Iterable[str], now: float) -> list[StoredEntry]: ...

    def aliases(self, keys: Iterable[str]) -> tuple[str, ...]: ...

    def keep(
        self, scope: str, entries: Sequence[MemoryEntry], grams: Mapping[str, frozenset[str]]
    ) -> None: ...

    def learn(self, alias: str, key: str) -> None: ...

    def ask(self, scope: str, key: str, now: float, until: float) -> str | bool: ...

    def answer(self, scope: str, key: str, answer: str | None, expires: float) -> None: ...


class EvidenceMemory:
    """The evidence memory, used in one way.

    Args:
        store: where it is kept; None if it is off.
        choice: how it is used.
    """

    def __init__(self, store: _EntryStore | None, choice: MemoryChoice) -> None:
        self._store = None if choice.mode == "off" else store
        self._choice = choice

    @property
    def keeps(self) -> bool:
        """Whether anything is kept."""
        reads_only = self._choice.mode == "read-only" or self._choice.as_of is not None
        return self._store is not None and not reads_only

    async def recall(
        self, names: Iterable[str], claim: str, before: date | None = None
    ) -> list[MemoryEntry]:
        """Return what is known about some entities, as far as a claim is to be shown it.

        Args:
            names: of the entities; where nothing is kept under a name, near ones count.
            claim: the claim, by which the evidence is ranked.
            before: the day before which its source must be published; None for any.

        Returns:
            At most eight entries, best first; empty if nothing is known or the memory is off.
        """
        store = self._store
        if store is None:
            return []
        return await asyncio.to_thread(self._recall, store, tuple(names), claim, before)

    def _recall(
        self, store: _EntryStore, names: Sequence[str], claim: str, before: date | None
    ) -> list[MemoryEntry]:
        scope = self._choice.scope
        keys: list[str] = []
        for key, entry_ids in store.keys_in_use(scope, looked_up(names)).items():
            keys += entry_ids or near(key, store.similar(scope, grams(key)))[:_NEAREST]
        query = SearchQuery(claim, before=before)
        admitted = [
            stored
            for stored in store.recall(scope, dict.fromkeys(keys), self._time())
            if query.admits(passage_of(stored.entry))
        ]
        return [stored.entry for stored in chosen(admitted, claim)]

    async def keep(self, names: Iterable[str], entries: Iterable[MemoryEntry]) -> None:
        """Keep evidence under some entities; nothing if the memory is off or only read."""
        store, keys = self._store, keys_of(names)
        kept = [entry for entry in entries if entry.text.strip()]
        if store is not None and self.keeps and keys and kept:
            await asyncio.to_thread(self._keep, store, keys, kept)

    def _keep(
        self, store: _EntryStore, keys: Sequence[str], entries: Sequence[MemoryEntry]
    ) -> None:
        # Also under what they stand for: a search by that name finds it, too.
        every = tuple(dict.fromkeys((*keys, *store.aliases(keys))))
        kept = [
            entry.model_copy(update={"text": entry.text[:_LONGEST], "entities": every})
            for entry in entries
        ]
        store.keep(self._choice.scope, kept, {key: grams(key) for key in every})

    async def learn(self, alias: str, name: str) -> None:
        """Let a name of an entity stand for another, as a redirect says; if anything is kept."""
        alias_key, other = key_of(alias), key_of(name)
        if self._store is not None and self.keeps and alias_key and other and alias_key != other:
            await asyncio.to_thread(self._store.learn, alias_key, other)

    @asynccontextmanager
    async def turn(self, names: Iterable[str]) -> AsyncIterator[None]:
        """Wait for those who are gathering evidence about the same, if it will be kept."""
        if self.keeps:
            scope = self._choice.scope
            async with _TURNS.turn(f"{scope}\n{key}" for key in keys_of(names)):
                yield
        else:
            yield

    async def once(
        self,
        asked: Sequence[JsonValue],
        ask: Callable[[], Awaitable[Sequence[Passage]]],
        *,
        kind: str,
        seconds: float,
    ) -> tuple[Passage, ...]:
        """Make a call, unless the same was made before and still counts, or is being made.

        Workers that share a database share the calls.

        Args:
            asked: all that the answer depends on.
            ask: makes the call; if it raises, nothing is kept.
            kind: of the source, by which the answer expires.
            seconds: that others wait for the answer before they ask themselves.
        """
        store = self._store
        if store is None or not self.keeps:
            return tuple(await ask())
        key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        place = (store, self._choice.scope, key)
        return await _CALLS.join(place, lambda: self._once(store, key, ask, kind, seconds))

    async def _once(
        self,
        store: _EntryStore,
        key: str,
        ask: Callable[[], Awaitable[Sequence[Passage]]],
        kind: str,
        seconds: float,
    ) -> tuple[Passage, ...]:
        scope = self._choice.scope
        while True:
            now = time.time()
            stored = await asyncio.to_thread(store.ask, scope, key, now, now + seconds)
            if isinstance(stored, str):
                return _PASSAGES.validate_json(stored)
            if stored:
                break
            await asyncio.sleep(_PAUSE)
        answer: str | None = None
        try:
            passages = tuple(await ask())
            answer = _PASSAGES.dump_json(passages).decode()
        finally:
            until = expires(kind, time.time())
            expiry = _NEVER if until is None else until
            await asyncio.shield(asyncio.to_thread(store.answer, scope, key, answer, expiry))
        return passages

    def _time(self) -> float:
        if self._choice.as_of is None:
            return time.time()
        after = self._choice.as_of + timedelta(days=1)
        return datetime(after.year, after.month, after.day, tzinfo=UTC).timestamp()


def passage_of(entry: MemoryEntry) -> Passage:
    """Return an entry's evidence as a passage."""
    return Passage(text=entry.text, title=entry.title, url=entry.url, date=entry.date)


def expires(kind: str, now: float) -> float | None:
    """Return when evidence of a kind of source that is kept now no longer counts; None for never.

    Raises:
        UsageError: ``SPANLAB_MEMORY_DAYS`` cannot be read.
    """
    days = _days(Settings.read().memory_days).get(kind, _DAYS["tool"])
    return None if days is None else now + days * _DAY


@cache
def _days(written: str) -> Mapping[str, float | None]:
    days_kept = dict(_DAYS)
    for part in filter(None, map(str.strip, written.split(","))):
        kind, _, days = (side.strip() for side in part.partition("="))
        if kind not in days_kept or not (days == "never" or days.isdecimal()):
            raise UsageError(
                f"{Settings.variable('memory_days')}: {part!r} is not like search=30 "
                f"(kinds: {', '.join(days_kept)}; or never)"
            )
        days_kept[kind] = None if days == "never" else float(days)
    return days_kept


_TURNS: Final = EntityTurns()
_CALLS: Final[SingleFlight[tuple[Passage, ...]]] = SingleFlight()

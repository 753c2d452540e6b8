"""Rows of the evidence memory: entries, the keys they are kept under, and answers of tools.

Everything lies in a scope, a name such as that of a dataset or a team; "" is for everybody.
Keys come normalised; times are seconds since 1970, UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from sqlalchemy import Connection, Row, bindparam, delete, text, update

from spanlab.base.errors import NotFoundError
from spanlab.base.settings import Settings
from spanlab.schema.memory import MemoryEntry, StoredEntry
from spanlab.storage.engine import Database
from spanlab.storage.tables import memories, memory_grams, memory_keys, tool_calls
from spanlab.storage.upgrade import open_database

_CROWD = 100  # entries of a key that are looked at, pinned ones and then the newest first
_COMMON = 300  # keys that are looked at of those that share one piece of a name
_PIECES = 60  # pieces of a name that are looked for
_CANDIDATES = 30  # of the keys that share most pieces, how many are compared
_PAGE = 500  # entries that are read at once
_NEWEST = 2**31 - 1  # above the number of every entry
_NO_ENTRY = "the memory has no entry {}: `spanlab memory list` shows them"
_KEEP = text(
    "INSERT INTO memories (scope, digest, json, at, expires, pinned, blocked) "
    "VALUES (:scope, :digest, :json, :at, :expires, 0, 0) ON CONFLICT (scope, digest) "
    "DO UPDATE SET expires = excluded.expires RETURNING id, pinned"
)
_KEY = text(
    "INSERT INTO memory_keys (scope, key, pinned, memory_id) "
    "VALUES (:scope, :key, :pinned, :id) ON CONFLICT DO NOTHING"
)
_GRAM = text(
    "INSERT INTO memory_grams (scope, gram, key) VALUES (:scope, :gram, :key) "
    "ON CONFLICT DO NOTHING"
)
_RECALL = text(
    "SELECT m.id, m.json, m.at, m.expires, m.pinned, m.blocked FROM "
    "(SELECT memory_id FROM memory_keys WHERE scope = :scope AND key = :key "
    "ORDER BY pinned DESC, memory_id DESC LIMIT :crowd) k "
    "JOIN memories m ON m.id = k.memory_id WHERE m.blocked = 0 AND m.at <= :now "
    "AND (m.expires IS NULL OR m.expires > :now) ORDER BY m.pinned DESC, m.id DESC"
).bindparams(crowd=_CROWD)
_ALIAS = text(
    "INSERT INTO memory_aliases (alias, key) VALUES (:alias, :key) "
    "ON CONFLICT (alias) DO UPDATE SET key = excluded.key"
)
_ALIAS_OF = text("SELECT key FROM memory_aliases WHERE alias = :alias")
_IS_KEY = text("SELECT 1 FROM memory_keys WHERE scope = :scope AND key = :key LIMIT 1")
_KEYS_OF = text(
    "SELECT memory_id, key FROM memory_keys WHERE memory_id IN :ids ORDER BY memory_id, key"
).bindparams(bindparam("ids", expanding=True))
_NEWEST_OF_ALL = text(
    "SELECT id, json, at, expires, pinned, blocked FROM memories "
    "WHERE scope = :scope AND id < :before ORDER BY id DESC LIMIT :limit"
)
_NEWEST_UNDER = text(
    "SELECT m.id, m.json, m.at, m.expires, m.pinned, m.blocked FROM memory_keys k "
    "JOIN memories m ON m.id = k.memory_id WHERE k.scope = :scope AND k.key = :key "
    "AND k.memory_id < :before ORDER BY k.memory_id DESC LIMIT :limit"
)
_NO_GRAMS = text("DELETE FROM memory_grams WHERE scope = :scope AND key = :key")
_SCOPE_OF = text("SELECT scope FROM memories WHERE id = :id")
# Who asks and would have answered much later than anybody may began before the clock was set back.
_ASK = text(
    "INSERT INTO tool_calls (scope, key, answer, expires) VALUES (:scope, :key, NULL, :until) "
    "ON CONFLICT (scope, key) DO UPDATE SET answer = NULL, expires = excluded.expires "
    "WHERE tool_calls.expires <= :now "
    "OR (tool_calls.answer IS NULL AND tool_calls.expires > :latest) RETURNING key"
)
_ANSWERED = text("SELECT answer FROM tool_calls WHERE scope = :scope AND key = :key")
_ANSWER = text(
    "UPDATE tool_calls SET answer = :answer, expires = :expires WHERE scope = :scope AND key = :key"
)
_GIVE_UP = text("DELETE FROM tool_calls WHERE scope = :scope AND key = :key AND answer IS NULL")


class MemoryStore:
    """The evidence memory of one database; any number of threads and processes may share it.

    Every method raises ``StoreError`` if the database refuses or cannot be reached.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, settings: Settings | None = None) -> Self:
        """Open the database that ``settings`` (None: the environment) name, migrating it if needed.

        Raises:
            UsageError: the database URL is none, or its driver is not installed.
            StoreError: it is no database, one of a newer spanlab, or cannot be reached.
        """
        return cls(open_database(settings or Settings.read()))

    def close(self) -> None:
        """Close the database's connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def keep(
        self, scope: str, entries: Sequence[MemoryEntry], grams: Mapping[str, frozenset[str]]
    ) -> None:
        """Keep entries under their entities; what is there already is valid for longer.

        Args:
            scope: where.
            entries: what to keep.
            grams: of every entity, the pieces by which near names find it.
        """
        keys: set[tuple[str, int, int]] = set()
        with self._database.writing() as connection:
            # In one order everywhere: two workers that keep the same do not lock each other out.
            for entry in sorted(entries, key=lambda memory: memory.digest):
                values = {"scope": scope, "digest": entry.digest, "json": entry.written}
                times = {"at": entry.at, "expires": entry.expires}
                row = connection.execute(_KEEP, values | times).one()
                keys.update((key, row.pinned, row.id) for key in entry.entities)
            if keys:
                rows = [
                    {"scope": scope, "key": key, "pinned": pinned, "id": number}
                    for key, pinned, number in sorted(keys)
                ]
                connection.execute(_KEY, rows)
            pieces = sorted({(gram, key) for key, _, _ in keys for gram in grams.get(key, ())})
            if pieces:
                rows = [{"scope": scope, "gram": gram, "key": key} for gram, key in pieces]
                connection.execute(_GRAM, rows)

    def recall(self, scope: str, keys: Iterable[str], now: float) -> list[StoredEntry]:
        """Return what is valid at a time and kept under any of these keys, each entry once.

        Of a key that very much is kept under, pinned entries and the newest are returned.
        """
        entries_found: dict[int, StoredEntry] = {}
        with self._database.reading() as connection:
            for key in keys:
                for row in connection.execute(_RECALL, {"scope": scope, "key": key, "now": now}):
                    entries_found.setdefault(row.id, _stored_entry(row))
        return list(entries_found.values())

    def keys_in_use(self, scope: str, keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return for each key the keys with entries: itself, and the one that it is an alias of.

        Keys under which nothing is kept have none.
        """
        names: dict[str, tuple[str, ...]] = {}
        with self._database.reading() as connection:
            for key in keys:
                alias = connection.execute(_ALIAS_OF, {"alias": key}).scalar()
                names[key] = tuple(
                    fromkey
                    for fromkey in dict.fromkeys(filter(None, (key, alias)))
                    if connection.execute(_IS_KEY, {"scope": scope, "key": fromkey}).scalar()
                )
        return names

    def aliases(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return the keys that aliases among ``keys`` stand for; empty if none is an alias."""
        with self._database.reading() as connection:
            names = (connection.execute(_ALIAS_OF, {"alias": key}).scalar() for key in keys)
            return tuple(str(name) for name in names if name is not None)

    def similar(self, scope: str, grams: Iterable[str]) -> list[str]:
        """Return the keys that share most pieces with a name, those with the most first."""
        parameters = {f"g{at}": gram for at, gram in enumerate(sorted(grams)[:_PIECES])}
        if not parameters:
            return []
        # One query: of a piece that many names share, only so many are looked at.
        condition = (
            "SELECT key FROM (SELECT key FROM memory_grams "  # noqa: S608 - our words
            f"WHERE scope = :scope AND gram = :{name} LIMIT {_COMMON}) x"
            for name in parameters
        )
        query = text(
            f"SELECT key FROM ({' UNION ALL '.join(condition)}) y "  # noqa: S608 - our words
            f"GROUP BY key ORDER BY count(*) DESC, key LIMIT {_CANDIDATES}"
        )
        with self._database.reading() as connection:
            return list(connection.execute(query, parameters | {"scope": scope}).scalars())

    def learn(self, alias: str, key: str) -> None:
        """Store that one key is an alias of another, as a redirect says."""
        with self._database.writing() as connection:
            connection.execute(_ALIAS, {"alias": alias, "key": key})

    def ask(self, scope: str, key: str, now: float, until: float) -> str | bool:
        """Say who answers a call: its answer if there is one, else whether the caller has to.

        Args:
            scope: where.
            key: what is asked.
            now: the time.
            until: how long others wait for the caller.

        Returns:
            The answer; True if the caller asks; False if somebody else is asking.
        """
        with self._database.writing() as connection:
            place = {"scope": scope, "key": key}
            times = {"now": now, "until": until, "latest": 2 * until - now}
            if connection.execute(_ASK, place | times).scalar() is not None:
                return True
            answer = connection.execute(_ANSWERED, place).scalar()
            return False if answer is None else str(answer)

    def answer(self, scope: str, key: str, answer: str | None, expires: float) -> None:
        """Store what the caller who asks was answered; None if that failed."""
        with self._database.writing() as connection:
            place = {"scope": scope, "key": key}
            if answer is None:
                connection.execute(_GIVE_UP, place)
            else:
                connection.execute(_ANSWER, place | {"answer": answer, "expires": expires})

    def entries(self, scope: str, key: str | None = None) -> Iterator[StoredEntry]:
        """Yield all entries of a scope, or those under one key, newest first, in bounded memory."""
        last_number = _NEWEST
        while page := self.page(scope, key, last_number):
            yield from page
            last_number = page[-1].id

    def page(
        self, scope: str, key: str | None = None, before: int = _NEWEST, limit: int = _PAGE
    ) -> list[StoredEntry]:
        """Return the newest entries of a scope with their entities, or those under one key.

        Args:
            scope: where.
            key: of the entity; None for all.
            before: the number that all of theirs are below: that of the last one seen.
            limit: entries at most.
        """
        parameters = {"scope": scope, "key": key, "before": before, "limit": limit}
        with self._database.reading() as connection:
            rows = connection.execute(_NEWEST_OF_ALL if key is None else _NEWEST_UNDER, parameters)
            stored_entries = [_stored_entry(row) for row in rows]
            keys: dict[int, list[str]] = {stored.id: [] for stored in stored_entries}
            for row in connection.execute(_KEYS_OF, {"ids": list(keys)}):
                keys[row.memory_id].append(row.key)
        return [
            replace(
                stored, entry=stored.entry.model_copy(update={"entities": tuple(keys[stored.id])})
            )
            for stored in stored_entries
        ]

    def scopes(self) -> dict[str, int]:
        """Return how many entries each scope has; empty if nothing is kept."""
        query = text("SELECT scope, count(*) AS n FROM memories GROUP BY scope ORDER BY scope")
        with self._database.reading() as connection:
            return {row.scope: row.n for row in connection.execute(query)}

    def pin(self, number: int, *, pinned: bool) -> None:
        """Let an entry be recalled before all others of its entities, or no longer.

        Raises:
            NotFoundError: no entry has this number.
        """
        with self._database.writing() as connection:
            _mark(connection, number, pinned=int(pinned))
            theirs = memory_keys.c.memory_id == number
            connection.execute(update(memory_keys).where(theirs).values(pinned=int(pinned)))

    def block(self, number: int, *, blocked: bool) -> None:
        """Never recall an entry, also when it is found again; or do.

        Raises:
            NotFoundError: no entry has this number.
        """
        with self._database.writing() as connection:
            _mark(connection, number, blocked=int(blocked))

    def delete(self, number: int) -> None:
        """Forget an entry, and the names of entities that nothing else is kept under.

        Raises:
            NotFoundError: no entry has this number.
        """
        with self._database.writing() as connection:
            scope = connection.execute(_SCOPE_OF, {"id": number}).scalar()
            if scope is None:
                raise NotFoundError(_NO_ENTRY.format(number))
            keys = list(connection.execute(_KEYS_OF, {"ids": [number]}))
            connection.execute(delete(memory_keys).where(memory_keys.c.memory_id == number))
            connection.execute(delete(memories).where(memories.c.id == number))
            for row in keys:
                place = {"scope": scope, "key": row.key}
                if connection.execute(_IS_KEY, place).scalar() is None:
                    connection.execute(_NO_GRAMS, place)

    def sweep(self, now: float) -> None:
        """Delete answers of tools that no longer count."""
        with self._database.writing() as connection:
            connection.execute(delete(tool_calls).where(tool_calls.c.expires <= now))

    def clear(self, scope: str) -> int:
        """Forget everything in a scope, answers of tools, too; return how many entries it had."""
        with self._database.writing() as connection:
            for table in (memory_keys, memory_grams, tool_calls):
                connection.execute(delete(table).where(table.c.scope == scope))
            return int(
                connection.execute(delete(memories).where(memories.c.scope == scope)).rowcount
            )


def _mark(connection: Connection, number: int, **marks: int) -> None:
    marked = connection.execute(update(memories).where(memories.c.id == number).values(marks))
    if not marked.rowcount:
        raise NotFoundError(_NO_ENTRY.format(number))


def _stored_entry(row: Row[Any]) -> StoredEntry:
    """Return the entry of a row of ours, which was checked when it was written."""
    fields = json.loads(row.json) | {"at": row.at, "expires": row.expires}
    entry = MemoryEntry.model_construct(**fields)
    return StoredEntry(row.id, entry, bool(row.pinned), bool(row.blocked))

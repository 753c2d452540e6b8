"""Traces that wait in the database until they are complete or quiet, for all servers that share it.

One server at a time reads a trace: it takes it for a minute, within which it says what it stored.
Where it dies meanwhile, another one takes the trace after that.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json
from sqlalchemy import Connection, and_, delete, exists, func, or_, select, update

from spanlab.storage.engine import Database, insert_new, insert_or_replace
from spanlab.storage.tables import waiting_parts as parts
from spanlab.storage.tables import waiting_traces as traces

_LARGEST: Final = 64 * 2**20  # bytes that the traces of a dataset take in the database
_BESIDE: Final = 250  # bytes that a part takes there beside its JSON, for its keys and their index
_LEASE: Final = 60.0  # seconds
_KEPT: Final = 3600.0  # seconds in which a late part still revises the items of its trace
_AT_ONCE: Final = 500  # keys in a condition


class WaitingTrace(NamedTuple):
    """What has come of a trace, and the ids of the items that it has made so far."""

    name: str
    version: int  # how many parts had come when it was taken, those that replaced one included
    parts: Sequence[dict[str, Any]]
    items: Sequence[str]
    was_left: bool  # whether a server died that was reading it: it may have made other items


class WaitingTraces:
    """The traces of one dataset; any number of threads and processes may share them.

    Every method raises ``StoreError`` if the database refuses or cannot be reached.
    """

    def __init__(self, database: Database, dataset: str) -> None:
        self._database, self._dataset = database, dataset

    def add(self, came: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
        """Keep parts, each once however often it is sent; the oldest traces go where all are large.

        Returns:
            The traces that have got a part and were never read, though their root and the parent
            of every span are there; and the items of others that had made some and got a part.
        """
        late = list[str]()
        by_trace: dict[str, dict[str, dict[str, Any]]] = {}
        for part in came:
            packed = to_json(part).decode()
            is_event = "event" in part
            named = None if is_event else part["id"]
            key = str(named or sha256(packed.encode()).hexdigest())
            row = {"part": key, "parent": None if is_event else str(part["parent"] or "")}
            by_trace.setdefault(str(part["trace"]), {})[key] = {**row, "json": packed}
        with self._database.writing() as connection:  # two servers take traces in the same order
            ready = [n for n in sorted(by_trace) if self._add(connection, n, by_trace[n], late)]
            self._forget(connection)
        return ready, late

    def _add(
        self,
        connection: Connection,
        name: str,
        rows: Mapping[str, dict[str, Any]],
        late: list[str],
    ) -> bool:
        own = {"dataset": self._dataset, "trace": name}
        start = {"came": 0.0, "size": 0, "version": 0, "version_read": 0, "has_root": 0}
        connection.execute(insert_new(connection, traces), {**own, **start, "items": "[]"})
        row = connection.execute(select(traces).filter_by(**own).with_for_update()).one()
        known: dict[str, str] = {}
        for at in range(0, len(rows), _AT_ONCE):
            some = parts.c.part.in_(list(rows)[at : at + _AT_ONCE])
            found = connection.execute(
                select(parts.c.part, parts.c.json).filter_by(**own).where(some)
            )
            known |= {part.part: part.json for part in found}
        new = [part for key, part in rows.items() if known.get(key) != part["json"]]
        has_root = row.has_root or any(part["parent"] == "" for part in new)
        if new:
            numbered = [{**own, "place": row.version + n, **part} for n, part in enumerate(new, 1)]
            connection.execute(insert_or_replace(connection, parts), numbered)
            gone = [known[part["part"]] for part in new if part["part"] in known]
            values = {
                "came": time.time(),
                "size": row.size + _size(part["json"] for part in new) - _size(gone),
                "version": row.version + len(new),
                "has_root": int(has_root),
            }
            connection.execute(update(traces).filter_by(**own).values(values))
            late += from_json(row.items)
        return bool(has_root and not row.version_read) and not self._lacks_parents(connection, own)

    def _lacks_parents(self, connection: Connection, own: Mapping[str, str]) -> bool:
        outer = parts.alias()
        is_there = exists().where(
            *(outer.c[name] == parts.c[name] for name in own), outer.c.part == parts.c.parent
        )
        lacking = select(parts.c.part).filter_by(**own).where(parts.c.parent != "", ~is_there)
        return connection.execute(lacking.limit(1)).first() is not None

    def _forget(self, connection: Connection) -> None:
        """Drop the oldest traces while all are too large, those that were read first."""
        own = traces.c.dataset == self._dataset
        size = int(connection.execute(select(func.sum(traces.c.size)).where(own)).scalar() or 0)
        if size > _LARGEST:
            is_new = traces.c.version_read < traces.c.version
            oldest = select(traces.c.trace, traces.c.size).where(own)
            dropped = []
            for row in connection.execute(oldest.order_by(is_new, traces.c.came)):
                if size > _LARGEST:
                    size -= row.size
                    dropped.append(row.trace)
            self._drop(connection, dropped)

    def _drop(self, connection: Connection, names: Sequence[str]) -> None:
        for at in range(0, len(names), _AT_ONCE):
            for table in (parts, traces):
                those = table.c.trace.in_(names[at : at + _AT_ONCE])
                connection.execute(delete(table).where(table.c.dataset == self._dataset, those))

    def quiet(self, seconds: float) -> list[str]:
        """Return the traces of which parts are unread, and none came for so long; the first first.

        Those that were read, and are quiet for an hour, are dropped.
        """
        now, own = time.time(), traces.c.dataset == self._dataset
        is_new = traces.c.version_read < traces.c.version
        # What came much later than now came before a clock was set back.
        is_quiet = or_(traces.c.came <= now - seconds, traces.c.came > now + _LEASE)
        is_old = or_(traces.c.came <= now - _KEPT, traces.c.came > now + _KEPT)
        with self._database.reading() as connection:
            names = select(traces.c.trace).where(own)
            old = connection.execute(names.where(~is_new, is_old)).scalars().all()
            found = connection.execute(names.where(is_new, is_quiet).order_by(traces.c.came))
            ready = list(found.scalars())
        if old:
            with self._database.writing() as connection:
                self._drop(connection, old)
        return ready

    def take(self, name: str) -> WaitingTrace | None:
        """Return a trace for reading; None if another server has it, or there is nothing new."""
        own, now = {"dataset": self._dataset, "trace": name}, time.time()
        is_free = or_(traces.c.until.is_(None), traces.c.until <= now)
        is_free = or_(is_free, traces.c.until > now + 2 * _LEASE)  # of a clock that was set back
        is_new = and_(traces.c.version_read < traces.c.version, is_free)
        with self._database.writing() as connection:
            whole = select(traces).filter_by(**own).where(is_new).with_for_update()
            if (row := connection.execute(whole).one_or_none()) is None:
                return None
            connection.execute(update(traces).filter_by(**own).values(until=now + _LEASE))
            rows = select(parts.c.json).filter_by(**own).order_by(parts.c.place)
            came = [from_json(packed) for packed in connection.execute(rows).scalars()]
        return WaitingTrace(name, row.version, came, from_json(row.items), row.until is not None)

    def finish(
        self, trace: WaitingTrace, items: Collection[str] | None, *, waits: bool = False
    ) -> None:
        """Give a trace back, with the ids of all items that it has made; None if it is unread.

        One that ``waits`` is read again when it is quiet, and not before.
        """
        read = {"version_read": trace.version - waits, "items": to_json(items).decode()}
        values = {"until": None, **(read if items is not None else {})}
        own = update(traces).filter_by(dataset=self._dataset, trace=trace.name)
        with self._database.writing() as connection:
            connection.execute(own.values(values))


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) + _BESIDE for text in texts)

"""The evidence memory for people: its scopes and entities, and entries to and from files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from pydantic import ValidationError

from spanlab.base.errors import InputError
from spanlab.base.fields import message_of
from spanlab.detection.entities import grams, key_of, near
from spanlab.memory.store import MemoryStore
from spanlab.schema import OWNER, Actor, Permission
from spanlab.schema.memory import MemoryEntry

_AT_ONCE: Final = 500  # entries that are written in one transaction
_LONGEST: Final = 1_000_000  # bytes of a line of a file


class RememberedScope(NamedTuple):
    """A scope of the memory, and how many entries it has."""

    name: str
    entries: int


def open_memory(actor: Actor = OWNER) -> MemoryStore:
    """Open the memory in the database that the environment names; the caller closes it.

    Raises:
        AccessError: the actor is no lead of all datasets.
    """
    actor.require(Permission.ADMINISTER)
    return MemoryStore.open()


def scopes(store: MemoryStore) -> list[RememberedScope]:
    """Return the scopes in which anything is kept, by name."""
    return [RememberedScope(name, number) for name, number in store.scopes().items()]


def entities_like(store: MemoryStore, scope: str, name: str) -> list[str]:
    """Return the entities that a name, or a part of one, may stand for.

    Returns:
        The entity of this name and those that it stands for, then near names and longer ones that
        hold it; only such as something is kept under.
    """
    key = key_of(name)
    if not key:
        return []
    similar = store.similar(scope, grams(key))
    longer_names = (longer for longer in similar if key in longer)
    candidates = dict.fromkeys(
        (*store.keys_in_use(scope, [key])[key], *near(key, similar), *longer_names)
    )
    return [key for key, n_entries in store.keys_in_use(scope, candidates).items() if n_entries]


def export_lines(store: MemoryStore, scope: str) -> Iterator[bytes]:
    """Yield the entries of a scope as lines of JSON; blocked ones are left out."""
    for stored in store.entries(scope):
        if not stored.blocked:
            yield stored.entry.model_dump_json(exclude_defaults=True).encode() + b"\n"


def import_lines(store: MemoryStore, scope: str, lines: BinaryIO, file: str | Path) -> int:
    """Keep the entries that ``export_lines`` wrote, and return how many there were.

    Raises:
        InputError: a line of ``file`` is no entry; those before it are kept.
    """
    waiting: list[MemoryEntry] = []
    number = 0
    while line := lines.readline(_LONGEST):
        number += 1
        waiting.append(_entry(line, file, number))
        if len(waiting) == _AT_ONCE:
            _keep(store, scope, waiting)
            waiting = []
    _keep(store, scope, waiting)
    return number


def _entry(line: bytes, file: str | Path, number: int) -> MemoryEntry:
    try:
        return MemoryEntry.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(
            f"no entry of the memory: {message_of(first).lower()}",
            file=file,
            line=number,
            field=".".join(str(part) for part in first["loc"]) or None,
            expected="a line that an export of the memory wrote",
        ) from None


def _keep(store: MemoryStore, scope: str, entries: list[MemoryEntry]) -> None:
    keyed = [
        entry.model_copy(update={"entities": tuple(filter(None, map(key_of, entry.entities)))})
        for entry in entries
    ]
    keys = {key for entry in keyed for key in entry.entities}
    store.keep(scope, keyed, {key: grams(key) for key in keys})

"""The evidence memory for people: lists, files, and what they decide about an entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from spanlab.errors import InputError
from spanlab.memory.names import grams, key_of
from spanlab.storage.memories import MemoryEntry, MemoryStore, StoredEntry

_AT_ONCE: Final = 500  # entries that are written in one transaction
_LONGEST: Final = 1_000_000  # characters of a line of a file


class RememberedScope(NamedTuple):
    """A scope of the memory, and how many entries it has."""

    name: str
    entries: int


def scopes(store: MemoryStore) -> list[RememberedScope]:
    """Return the scopes in which anything is kept, by name."""
    return [RememberedScope(name, number) for name, number in store.scopes().items()]


def listed(store: MemoryStore, scope: str, entity: str | None = None) -> Iterator[StoredEntry]:
    """Yield the entries of a scope, or those kept under an entity, newest first."""
    return store.entries(scope, None if entity is None else key_of(entity))


def export_lines(store: MemoryStore, scope: str) -> Iterator[str]:
    """Yield the entries of a scope as lines of JSON; blocked ones are left out."""
    for stored in store.entries(scope):
        if not stored.blocked:
            yield stored.entry.model_dump_json(exclude_defaults=True) + "\n"


def import_file(store: MemoryStore, scope: str, file: Path) -> int:
    """Keep the entries of a file that ``export_lines`` wrote, and return how many it had.

    Raises:
        InputError: a line is no entry; those before it are kept.
    """
    waiting: list[MemoryEntry] = []
    number = 0
    try:
        with file.open(encoding="utf-8") as lines:
            while line := lines.readline(_LONGEST):
                number += 1
                waiting.append(_entry(line, file, number))
                if len(waiting) == _AT_ONCE:
                    _keep(store, scope, waiting)
                    waiting = []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=file) from error
    _keep(store, scope, waiting)
    return number


def _entry(line: str, file: Path, number: int) -> MemoryEntry:
    try:
        return MemoryEntry.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(
            f"no entry of the memory: {first['msg'].lower()}",
            file=file,
            line=number,
            field=".".join(str(part) for part in first["loc"]) or None,
            expected="a line that `spanlab memory export` wrote",
        ) from None


def _keep(store: MemoryStore, scope: str, entries: list[MemoryEntry]) -> None:
    keyed = [
        entry.model_copy(update={"entities": tuple(filter(None, map(key_of, entry.entities)))})
        for entry in entries
    ]
    keys = {key for entry in keyed for key in entry.entities}
    store.keep(scope, keyed, {key: grams(key) for key in keys})

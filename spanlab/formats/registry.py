"""The formats that there are: those in the folder ``known``, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from spanlab.base.errors import SpanlabError, UsageError
from spanlab.base.inbound import brought, offered
from spanlab.formats import known
from spanlab.formats.files import InputFile
from spanlab.formats.reader import FormatEntry, FormatReader

KIND = "formats"  # under which rooms and packages offer them; each is a ``FormatEntry``


@cache
def known_formats() -> Mapping[str, FormatEntry]:
    """Return the formats in the folder ``known`` by their names, in their order."""
    files = iter_modules(known.__path__, f"{known.__name__}.")
    modules = (import_module(file.name) for file in files)
    entries = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    return {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.order)}


def formats() -> tuple[str, ...]:
    """Return the names of all formats that may be read, those of installed packages last."""
    ours = known_formats()
    brought_along = (name for name in offered(KIND) if name not in ours and _reads(name))
    return (*(name for name in ours if _reads(name)), *brought_along)


def titles() -> dict[str, str]:
    """Return what the choices of a format are called on screen."""
    named = {name: known_formats()[name].title for name in formats() if name in known_formats()}
    return {"auto": "Detect automatically", **named}


def entry_of(name: str) -> FormatEntry | None:
    """Return the format of a name; None if there is none.

    Raises:
        SpanlabError: that of a package is broken.
    """
    if name in known_formats():
        return known_formats()[name]
    entry: FormatEntry | None = brought(KIND, name) if name in offered(KIND) else None
    return entry


def reader_of(name: str) -> type[FormatReader]:
    """Return the reader of a format.

    Raises:
        UsageError: there is none of this name, or it is only written.
    """
    entry = entry_of(name)
    if entry is None:
        raise UsageError(f"no format {name!r}; known are auto, {', '.join(formats())}")
    if entry.reader is None:
        raise UsageError(f"format {name!r} can only be written")
    return entry.reader


def folder_of(path: Path) -> Path | None:
    """Return the folder that a path means, where a format reads it as a whole; None for others."""
    for reader in map(reader_of, formats()):
        folder = path.parent if path.name == reader.main_file else path
        if folder.is_dir() and reader.owns(InputFile(folder, str(folder))):
            return folder
    return None


@cache
def _reads(name: str) -> bool:
    """Say whether a format can be read; one that is broken is told when it is named."""
    try:
        entry = entry_of(name)
    except SpanlabError:
        return False
    return entry is not None and entry.reader is not None

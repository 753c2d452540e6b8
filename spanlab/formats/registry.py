"""The formats that there are: those in the folder ``known``, of other rooms and of packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from spanlab import doors
from spanlab.base.errors import SpanlabError, UsageError
from spanlab.base.inbound import brought, offered
from spanlab.base.options import Option, options_in
from spanlab.formats import known
from spanlab.formats.files import InputFile
from spanlab.formats.reader import FormatEntry, FormatReader

KIND = "formats"  # under which rooms and packages offer them; each is a ``FormatEntry``


def known_formats() -> Mapping[str, FormatEntry]:
    """Return all formats by their names, in their order; a package's never takes one of ours.

    One that is broken is left out: it is told when it is named.
    """
    return _formats_in(tuple(known.__path__), doors.offers(KIND))


@cache
def _formats_in(folders: Sequence[str], offers: Sequence[doors.Offer]) -> Mapping[str, FormatEntry]:
    modules = (import_module(file.name) for file in iter_modules(folders, f"{known.__name__}."))
    found = (module.FORMAT for module in modules if hasattr(module, "FORMAT"))
    entries: dict[str, FormatEntry] = {entry.name: entry for entry in found}
    for offer in offers:
        with suppress(SpanlabError):
            entries.setdefault(offer.name, brought(KIND, offer.name))
    return dict(sorted(entries.items(), key=lambda named: named[1].order))


def formats() -> tuple[str, ...]:
    """Return the names of all formats that may be read, those of installed packages last."""
    return tuple(name for name, entry in known_formats().items() if entry.reader is not None)


def writable() -> tuple[str, ...]:
    """Return the names of all formats that may be written."""
    return tuple(name for name, entry in known_formats().items() if entry.is_written)


def options_of(*names: str) -> tuple[Option, ...]:
    """Return the options that these formats alone have, each once; without names those of all."""
    models = (reader_of(name).own_options for name in names or formats())
    options = {option.name: option for model in models for option in options_in(model)}
    return tuple(
        replace(option, path=("own", name), listed_by="spanlab formats NAME")
        for name, option in options.items()
    )


def titles() -> dict[str, str]:
    """Return what the choices of a format are called on screen."""
    named = {name: known_formats()[name].title or name for name in formats()}
    return {"auto": "Detect automatically", **named}


def entry_of(name: str) -> FormatEntry | None:
    """Return the format of a name; None if there is none.

    Raises:
        SpanlabError: that of a package is broken.
    """
    if name not in known_formats() and name in offered(KIND):
        brought(KIND, name)  # which says how it is broken
    return known_formats().get(name)


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


def without_second(files: list[Path]) -> list[Path]:
    """Return files without those that a format reads beside its others.

    Such a file alone stays, so that the reader's error explains it.
    """
    seconds = {reader_of(name).second_file for name in formats()}
    return [file for file in files if file.name not in seconds] or files


def folder_of(path: Path) -> Path | None:
    """Return the folder that a path means, where a format reads it as a whole; None for others."""
    for reader in map(reader_of, formats()):
        folder = path.parent if path.name == reader.main_file else path
        if folder.is_dir() and reader.owns(InputFile(folder, str(folder))):
            return folder
    return None

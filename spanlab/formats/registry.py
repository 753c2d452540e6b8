"""The formats that there are: those that come with spanlab, and those of installed packages."""

from __future__ import annotations

from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from spanlab.base.errors import SpanlabError, UsageError
from spanlab.base.inbound import brought, offered
from spanlab.formats.known import FORMATS

if TYPE_CHECKING:
    from spanlab.formats.reader import FormatReader

KIND = "formats"  # under which rooms and packages offer them; each is a ``FormatEntry``


def formats() -> tuple[str, ...]:
    """Return the names of all formats that may be read, those of installed packages last."""
    return (*FORMATS, *(name for name in offered(KIND) if name not in FORMATS and _reads(name)))


def reader_of(name: str) -> type[FormatReader]:
    """Return the reader of a format.

    Raises:
        UsageError: there is none of this name, or it is only written.
    """
    if name in FORMATS:
        reader: type[FormatReader] = resolve_name(FORMATS[name].reader)
        return reader
    if name not in offered(KIND):
        raise UsageError(f"no format {name!r}; known are auto, {', '.join(formats())}")
    made: type[FormatReader] | None = brought(KIND, name).reader
    if made is None:
        raise UsageError(f"format {name!r} cannot be read, only written")
    return made


@cache
def _reads(name: str) -> bool:
    """Say whether a package's format can be read; one that is broken is told when it is named."""
    try:
        return brought(KIND, name).reader is not None
    except SpanlabError:
        return False

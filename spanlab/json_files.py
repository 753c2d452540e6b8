"""Files of JSON that people may have edited, read as one of our types, or refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from spanlab.errors import InputError

LARGEST: Final = 4_000_000  # bytes; a program of sixteen demonstrations with long passages: a tenth

_M = TypeVar("_M", bound=BaseModel)


def read_json(kind: type[_M], path: Path, what: str, *, most: int = LARGEST) -> _M:
    """Return what a file holds.

    Args:
        kind: its type.
        path: the file.
        what: what it should be, such as "a calibration", for messages.
        most: bytes that it may have.

    Raises:
        InputError: it cannot be read, is larger, or is something else; names the field.
    """
    try:
        if path.stat().st_size > most:
            raise InputError(f"too large for {what}", file=path, expected=f"at most {most:,} bytes")
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or None
        raise InputError(f"not {what}", file=path, field=field, expected=first["msg"]) from None

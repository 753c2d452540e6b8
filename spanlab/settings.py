"""Where spanlab keeps its work and how it is configured: variables and files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spanlab.errors import InputError, UsageError

_RECORD_LIMIT = 128  # MiB


class Settings(BaseModel):
    """What the environment says.

    ``home`` is the directory for the database and its backups. ``database_url`` is an SQLAlchemy
    URL. ``programs`` is the registry of tuned prompts, by default a directory in ``home``.
    ``allowed_hosts`` are the names under which other machines reach the app, beside this machine's
    own. ``files_root`` is the directory whose files people may name in the app. ``record_limit`` is
    how many MiB of memory a record of a file may take once it is read.
    """

    model_config = ConfigDict(frozen=True)

    home: Path
    database_url: str = Field(repr=False)  # it may hold a password
    programs: Path = Field(default_factory=lambda data: data["home"] / "programs")
    allowed_hosts: frozenset[str] = frozenset()
    files_root: Path | None = None
    record_limit: int = _RECORD_LIMIT

    @classmethod
    def read(cls) -> Settings:
        """Read the variables.

        ``SPANLAB_HOME`` (default ``.spanlab``), ``SPANLAB_DATABASE_URL`` (default an SQLite file
        in it), ``SPANLAB_PROGRAMS`` (default ``programs`` in it), ``SPANLAB_ALLOWED_HOSTS``
        (names, separated by commas; default none), ``SPANLAB_FILES_ROOT`` (default none) and
        ``SPANLAB_RECORD_LIMIT`` (MiB, default 128).

        Raises:
            UsageError: the limit is no number of 1 or more.
        """
        home = Path(os.environ.get("SPANLAB_HOME", ".spanlab"))
        url = os.environ.get("SPANLAB_DATABASE_URL") or f"sqlite:///{home / 'spanlab.db'}"
        programs = Path(os.environ.get("SPANLAB_PROGRAMS") or home / "programs")
        hosts = os.environ.get("SPANLAB_ALLOWED_HOSTS", "").lower().split(",")
        root = os.environ.get("SPANLAB_FILES_ROOT")
        return cls(
            home=home,
            database_url=url,
            programs=programs,
            allowed_hosts=frozenset(filter(None, map(str.strip, hosts))),
            files_root=Path(root) if root else None,
            record_limit=_mebibytes("SPANLAB_RECORD_LIMIT", _RECORD_LIMIT),
        )


def _mebibytes(name: str, default: int) -> int:
    written = os.environ.get(name) or str(default)
    if not (written.isdecimal() and int(written)):
        raise UsageError(f"{name}={written}: it is a number of MiB, 1 or more")
    return int(written)


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

"""Files as rows of bytes, and files that are replaced whole or not at all."""

from __future__ import annotations

import fcntl
import glob
import gzip
import json
import os
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from spanlab.datasets.problems import input_error
from spanlab.errors import InputError
from spanlab.fields import storable

BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
# An escape of the first half of a pair without the second one, or the other way round.
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)


class Row(NamedTuple):
    """One record of a file: its place, counted from 1, and its JSON.

    ``unit`` says what ``line`` counts, as in ``InputError``; ``number`` counts the records of a
    file in which they may be longer than a line, and is 0 elsewhere.
    """

    line: int
    raw: bytes
    unit: str = "line"
    number: int = 0


@dataclass(frozen=True)
class File:
    """A file to read; ``name`` is what messages call it."""

    path: Path
    name: str

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file for reading, unpacking gzip.

        Raises:
            InputError: it is missing, a directory, unreadable, or broken gzip.
        """
        if self.path.is_dir():
            raise InputError("this is a directory", file=self.name, expected="a file")
        try:
            with self.path.open("rb") as plain:
                packed = plain.read(2) == _GZIP
                plain.seek(0)
                if not packed:
                    yield plain
                    return
                with gzip.open(plain) as unpacked:
                    yield cast(BinaryIO, unpacked)
        except FileNotFoundError:
            raise InputError("there is no such file", file=self.name) from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"the gzip data is broken: {error}", file=self.name) from error
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=self.name) from error

    def head(self, size: int = 1 << 16) -> bytes:
        """Return the first ``size`` bytes (fewer if the file is shorter), without a BOM.

        Raises:
            InputError: the file is empty, not UTF-8 text, or cannot be read.
        """
        with self.open() as stream:
            head = stream.read(size)
        if head.startswith(_UTF16):
            raise InputError("the file is UTF-16", file=self.name, expected="UTF-8")
        head = head.removeprefix(BOM)
        if not head.strip():
            raise InputError("the file is empty", file=self.name, expected="at least one record")
        return head

    def rows(self) -> Iterator[Row]:
        """Yield the records of JSON Lines, or of one JSON array.

        Lines end at a line feed alone, so that no separator inside a string splits a record.

        Raises:
            InputError: the file is empty or cannot be read.
        """
        start = self.head()
        if start.lstrip().startswith(b"["):
            yield from self.array()
            return
        with self.open() as stream:
            for number, raw in enumerate(stream, start=1):
                if not raw.isspace():
                    yield _row(number, raw)

    def load(self) -> object:
        """Return the whole file as one JSON value.

        Raises:
            InputError: it is not JSON.
        """
        with self.open() as stream:
            data = _storable(stream.read().removeprefix(BOM))
        try:
            return from_json(data, allow_inf_nan=False)
        except ValueError as error:
            _refuse_lines_of_arrays(data, self.name)
            raise InputError(f"not valid JSON: {error}", file=self.name) from None

    def array(self) -> Iterator[Row]:
        """Yield the elements of the JSON array that the whole file is, numbered from 1.

        Raises:
            InputError: it is not a JSON array.
        """
        values = self.load()
        if not isinstance(values, list):
            raise InputError("not a JSON array", file=self.name, expected="[ … ]")
        for number, value in enumerate(values, start=1):
            yield Row(number, to_json(value), "record")


def _row(number: int, raw: bytes) -> Row:
    return Row(number, _storable(raw.removeprefix(BOM) if number == 1 else raw))


def _storable(data: bytes) -> bytes:
    """Return JSON without lone surrogates: half emojis, where an answer was cut off."""
    if not _LONE_SURROGATE.search(data):
        return data
    try:
        return to_json(storable(json.loads(data)))
    except (ValueError, RecursionError):
        return data  # no JSON: the reader says what is wrong


def _refuse_lines_of_arrays(data: bytes, name: str) -> None:
    """Say so if a file that begins like one JSON array is lines of arrays."""
    first, _, rest = data.partition(b"\n")
    try:
        is_array = isinstance(from_json(first), list)
    except ValueError:
        return
    if is_array and rest.strip():
        raise InputError(
            "the line is a JSON array",
            file=name,
            line=1,
            found=first[:60].decode(errors="replace"),
            expected="a JSON object on every line, or one array that is the whole file",
        )


class RecordIndex:
    """JSON Lines looked up by a key of theirs.

    Only where each key stands is kept in memory; of packed files, whose places cannot be gone back
    to cheaply, the lines themselves.

    Args:
        file: the lines.
        key: the key of a line.

    Raises:
        InputError: the file cannot be read, or a line has no key.
    """

    def __init__(self, file: File, key: Callable[[Row], str]) -> None:
        self.name = file.name
        self._file = file
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._lines: dict[int, bytes] = {}
        file.head()
        with file.open() as stream:
            keep = isinstance(stream, gzip.GzipFile)
            place = 0
            for number, raw in enumerate(stream, start=1):
                if not raw.isspace():
                    row = _row(number, raw)
                    self._places.setdefault(self._key(key, row), []).append((number, place))
                    if keep:
                        self._lines[number] = row.raw
                place += len(raw)

    def rows(self, key: str) -> Iterator[Row]:
        """Yield the lines with this key, in the file's order; none if there are none."""
        places = self._places.get(key, ())
        if places and self._lines:
            yield from (Row(number, self._lines[number]) for number, _ in places)
        elif places:
            with self._file.open() as stream:
                for number, place in places:
                    stream.seek(place)
                    yield _row(number, stream.readline())

    def _key(self, key: Callable[[Row], str], row: Row) -> str:
        try:
            return key(row)
        except ValidationError as error:
            raise input_error(error).at(file=self.name, line=row.line) from None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open ``path`` for writing so that it appears whole or not at all.

    What is written goes to a temporary file beside ``path``, which replaces it when the block
    ends without an error. Names ending in ``.gz`` are packed. Devices and pipes, which cannot be
    replaced, are written to as they are.

    Raises:
        InputError: the directory is missing or may not be written to.
    """
    target = path.resolve()
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            with target.open("wb") as stream:
                yield stream
            return
        _remove_left_over(target)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
        with temporary.open("xb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)  # as long as this process lives, it is in use
            try:
                with _packed(stream, target) as writer:
                    yield writer
                stream.flush()
                os.fsync(stream.fileno())
                if target.exists():
                    shutil.copymode(target, temporary)
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from error


def _remove_left_over(target: Path) -> None:
    """Remove the temporary files of writers of ``target`` that were killed."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 12}.tmp"):
        with suppress(OSError), path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


@contextmanager
def _packed(stream: BinaryIO, target: Path) -> Iterator[BinaryIO]:
    if target.suffix != ".gz":
        yield stream
        return
    # No name and no time in the header: the same records give the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
        yield cast(BinaryIO, packed)

"""Files as rows of bytes, and files that are replaced whole or not at all."""

from __future__ import annotations

import fcntl
import glob
import gzip
import io
import json
import os
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from pydantic_core import from_json, to_json

from spanlab.base.errors import InputError, unreadable
from spanlab.base.fields import storable
from spanlab.formats.arrays import elements
from spanlab.formats.containers import GZIP, plain_path
from spanlab.formats.limits import (
    DENSEST,
    TOGETHER,
    BoundedStream,
    longest,
    record_limit,
    too_large,
    too_many,
    weight,
)

BOM = b"\xef\xbb\xbf"
IN_MEMORY = Path(os.devnull)  # where nothing else is found, whatever is looked for beside a file
# An escape of the first half of a pair without the second one, or the other way round.
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_KEYS = re.compile(rb'"([^"]*)"\s*:')  # or, of one with a quote in it, what is behind that
_KEY_ENDS = (b'":', b'" :')
_BUFFER = 1 << 16
_SHOWN = 1 << 10  # bytes of a record that is too large


def files_named(patterns: Iterable[str]) -> list[Path]:
    """Return the files that paths and globs name, globs in sorted order.

    Raises:
        InputError: a path does not exist, or a glob matches nothing.
    """
    files: list[Path] = []
    for pattern in patterns:
        if Path(pattern).exists():
            files.append(Path(pattern))
            continue
        matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - absolute globs too
        if not matches:
            raise InputError("there is no such file", file=pattern)
        files.extend(map(Path, matches))
    return files


def check_file(path: Path, name: str | None = None) -> None:
    """Refuse what is no file: a pipe or a device may never end, and is not read twice.

    Raises:
        InputError: it is one; what is not there is left to whoever opens it.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            "this is a pipe or a device", file=name or path, expected="a file: save it as one first"
        )


class FileRow(NamedTuple):
    """One record of a file: its place, counted from 1, and its JSON.

    ``unit`` says what ``line`` counts, as in ``InputError``; ``number`` counts the records of a
    file in which they may be longer than a line, and is 0 elsewhere. ``beginning`` is the JSON, or
    of a record that is too large what shows which it is; ``refused`` says so. ``turn`` is which
    answer of a chat is meant, from 1; 0 for the only or last one.
    """

    line: int
    beginning: bytes
    unit: str = "line"
    number: int = 0
    refused: InputError | None = None
    turn: int = 0

    @property
    def raw(self) -> bytes:
        """The JSON of the record.

        Raises:
            InputError: the record is too large.
        """
        if self.refused is not None:
            raise self.refused
        return self.beginning

    @property
    def value(self) -> Any:
        """The record as a JSON value.

        Raises:
            InputError: it is too large, not JSON, or has a key twice in one object.
        """
        try:
            return from_json(self.raw, allow_inf_nan=False)
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}") from None

    @property
    def readable(self) -> Any:
        """The record as a JSON value; None if it cannot be read, which its reader says."""
        try:
            return self.value
        except InputError:
            return None


_BEGINNING = 1 << 16  # bytes by which formats are told
_KEPT = 1 << 20  # bytes of a file that are kept for all who look at its first records


class _Continued(io.RawIOBase):
    """A stream whose beginning is in memory, and which is opened once more of it is read."""

    def __init__(self, beginning: bytes, opened: Callable[[], BinaryIO]) -> None:
        self._beginning, self._opened = memoryview(beginning), opened
        self._at = 0

    @cached_property
    def _stream(self) -> BinaryIO:
        return self._opened()

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be gone back in."""
        return True

    # typeshed wants any buffer here; a BufferedReader, which alone calls this, gives a memoryview.
    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # as said above
        """Read into ``buffer``."""
        data: bytes | memoryview = self._beginning[self._at : self._at + len(buffer)]
        if not data:
            self._stream.seek(self._at)
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        at = {io.SEEK_SET: offset, io.SEEK_CUR: self._at + offset}.get(whence)
        self._at = self._stream.seek(offset, whence) if at is None else at
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at


@dataclass(frozen=True)
class InputFile:
    """A file to read; ``name`` is what messages call it, ``limit`` the largest record's memory.

    ``encoding`` is that of its text; None for UTF-8, or what its byte order mark says. ``data`` is
    what it holds where that is in memory, with ``IN_MEMORY`` as its path; ``unit`` says what its
    lines are called.
    """

    path: Path
    name: str
    limit: int = field(default_factory=record_limit)
    encoding: str | None = None
    data: bytes | None = field(default=None, repr=False)
    unit: str = "line"

    @property
    def size(self) -> int:
        """How many bytes the file has, as it is packed; it must be there."""
        return self.path.stat().st_size if self.data is None else len(self.data)

    def packed(self) -> bool:
        """Say whether the file is packed with gzip; it must be there."""
        with self.path.open("rb") as stream:
            return stream.read(len(GZIP)) == GZIP

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file for reading, unpacked and in UTF-8; its beginning is read once.

        Raises:
            InputError: it is missing, a directory, unreadable, or what it is packed in is broken.
        """
        if self.data is not None or len(self._beginning) < _KEPT:
            yield io.BytesIO(self._beginning if self.data is None else self.data)
            return
        with self._errors_told(), ExitStack() as opened:
            rest = _Continued(self._beginning, lambda: opened.enter_context(self._opened()))
            yield io.BufferedReader(rest, _BUFFER)

    @cached_property
    def _beginning(self) -> bytes:
        with self._errors_told(), self._opened() as stream:
            return stream.read(_KEPT)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self.path.is_dir():
            raise InputError("this is a directory", file=self.name, expected="a file")
        check_file(self.path, self.name)
        with self.path.open("rb") as plain:
            head = plain.read(4)
            plain.seek(0)
            path = plain_path(self.path, head, self.name, self.limit, self.encoding)
            if path != self.path:
                with path.open("rb") as made:
                    yield made
            elif head.startswith(GZIP):
                with gzip.open(plain) as unpacked:
                    stream = cast(BinaryIO, unpacked)
                    bounded = BoundedStream(stream, self.size, self.limit, self.name)
                    yield io.BufferedReader(bounded, _BUFFER)
            else:
                yield plain

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise InputError("there is no such file", file=self.name) from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"the packed data is broken: {error}", file=self.name) from error
        except OSError as error:
            raise unreadable(self.name, error) from error

    def head(self) -> bytes:
        """Return the first 64 KiB (fewer if the file is shorter), without a BOM.

        Raises:
            InputError: the file is empty, or cannot be read.
        """
        if not self._head.strip():
            raise InputError("the file is empty", file=self.name, expected="at least one record")
        return self._head

    @cached_property
    def _head(self) -> bytes:
        beginning = self._beginning if self.data is None else self.data
        return beginning[:_BEGINNING].removeprefix(BOM)

    def rows(self, *, lists: bool = False) -> Iterator[FileRow]:
        """Yield the records of JSON Lines, or of one JSON array.

        Lines end at a line feed alone, so that no separator inside a string splits a record.

        Args:
            lists: whether lines may be JSON arrays.

        Raises:
            InputError: the file is empty or cannot be read.
        """
        head = self.head()
        if begins_array(head):
            yield from self.array()
            return
        if not lists and head.lstrip().startswith(b"["):
            raise is_list(head, self.name)
        with self.open() as stream:
            for row, _ in self.lines(stream):
                if not row.beginning.isspace():
                    yield row

    def lines(self, stream: BinaryIO) -> Iterator[tuple[FileRow, int]]:
        """Yield the lines of the open file, each with the place at which it begins."""
        max_bytes = longest(self.limit)
        number = place = 0
        while line := stream.readline(max_bytes + 1):
            number += 1
            begin, size = place, len(line)
            place += size
            row = self.row(number, line.removeprefix(BOM) if number == 1 else line)
            while size > max_bytes and not line.endswith(b"\n"):
                line = stream.readline(_BUFFER)
                place += len(line)
                if not line:
                    break
            yield row, begin

    def held(self, rows: Iterable[FileRow], what: str = "the file") -> Iterator[FileRow]:
        """Yield rows that are all kept in memory at once; raises InputError for too many."""
        size = 0
        for row in rows:
            size += len(row.beginning)
            if size > TOGETHER * self.limit:
                raise too_many(what, self.limit, self.name, row.line)
            yield row

    def row(self, line: int, raw: bytes, unit: str = "", number: int = 0) -> FileRow:
        """Return a record's row, which refuses to be read if it is too large."""
        unit = unit or self.unit
        # A record that is short enough whatever stands in it, as nearly all are, is not counted.
        if len(raw) * DENSEST <= self.limit or weight(raw) <= self.limit:
            try:
                _check_keys(raw)
                return FileRow(line, _storable(raw), unit, number)
            except InputError as error:
                refused = error
        else:
            refused = too_large("the record", self.limit)
        refused.unit = unit
        refused = refused.at(file=self.name, line=line, unit=unit)
        return FileRow(line, raw[:_SHOWN], unit, number, refused=refused)

    def whole(self, *, values: bool = False) -> bytes:
        """Return all that the file holds, without a BOM.

        Args:
            values: whether it is JSON, whose values take memory, too.

        Raises:
            InputError: it cannot be read, or is too large to be read at once.
        """
        with self.open() as stream:
            data = stream.read(longest(self.limit) + 1)
        if weight(data, values=values) > self.limit:
            raise too_large("the file", self.limit, file=self.name)
        data = data.removeprefix(BOM)
        if not values:
            return data
        try:
            _check_keys(data)
        except InputError as error:
            raise error.at(file=self.name) from None
        return _storable(data)

    def load(self) -> object:
        """Return the whole file as one JSON value.

        Raises:
            InputError: it is not JSON, too large to be read at once, or has a key twice.
        """
        try:
            return from_json(self.whole(values=True), allow_inf_nan=False)
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}", file=self.name) from None

    def array(self) -> Iterator[FileRow]:
        """Yield the elements of the JSON array that the whole file is, numbered from 1.

        Raises:
            InputError: it is not a JSON array.
        """
        with self.open() as stream:
            if stream.read(len(BOM)) != BOM:
                stream.seek(0)
            try:
                for number, raw in enumerate(elements(stream, longest(self.limit)), start=1):
                    yield self.row(number, raw, "record")
            except ValueError as error:
                raise InputError(f"not valid JSON: {error}", file=self.name) from None


def _check_keys(raw: bytes) -> None:
    """Check that no key of a JSON object is lost to another one of its name; not what is no JSON.

    A parser that calls Python for each object takes six times as long. So the keys of a record in
    which some name comes again are counted in it and in what is read of it: only where these
    differ are they looked at.

    Raises:
        InputError: a key is twice in one object.
    """
    names = _KEYS.findall(raw)
    if len(names) == len(set(names)):
        return
    with suppress(ValueError, RecursionError):
        written = to_json(from_json(raw))
        if any(raw.count(mark) > written.count(mark) for mark in _KEY_ENDS):
            json.loads(raw, object_pairs_hook=_only_once)


def _only_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; raises InputError for two of one name."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise InputError(
            f"the key {next(n for n in members if names.count(n) > 1)!r} is twice in one object",
            expected="each key once: which of the two counts is not known",
        )
    return members


def _storable(data: bytes) -> bytes:
    """Return JSON without lone surrogates (half emojis, where an answer was cut off) and NaN.

    What is not a number or infinite, which Python writes although JSON has no word for it, is a
    missing value.
    """
    is_cut = b"\\u" in data and _LONE_SURROGATE.search(data)
    if not is_cut and b"NaN" not in data and b"Infinity" not in data:
        return data
    try:
        return to_json(storable(json.loads(data)), inf_nan_mode="null")
    except (ValueError, RecursionError):
        return data  # no JSON: the reader says what is wrong


def begins_array(head: bytes) -> bool:
    """Say whether a file that begins so is one JSON array, and not lines that are arrays each."""
    if not head.lstrip().startswith(b"["):
        return False
    first_line, _, later_lines = head.partition(b"\n")
    try:
        return not (later_lines.strip() and isinstance(from_json(first_line), list))
    except ValueError:
        return True


def is_list(line: bytes, file: str) -> InputError:
    """Return the error of a line that is a JSON array and no record."""
    return InputError(
        "the line is a JSON array",
        file=file,
        line=1,
        found=line[:60].decode(errors="replace").partition("\n")[0],
        expected="a JSON object on every line, or one array that is the whole file",
    )


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
        with _open_temporary(target) as stream:
            temporary = Path(stream.name)
            try:
                with _open_packed(stream, target) as writer:
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


def _open_temporary(target: Path) -> BinaryIO:
    """Open a temporary file beside ``target`` that is in use as long as this process lives.

    Another writer may take it for left over, and remove it, before it is locked: then there is
    another one.
    """
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
        stream = path.open("xb")
        fcntl.flock(stream, fcntl.LOCK_EX)
        if path.exists():
            return stream
        stream.close()


def _remove_left_over(target: Path) -> None:
    """Remove the temporary files of writers of ``target`` that were killed."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 12}.tmp"):
        with suppress(OSError), path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


@contextmanager
def _open_packed(stream: BinaryIO, target: Path) -> Iterator[BinaryIO]:
    if target.suffix != ".gz":
        yield stream
        return
    # No name and no time in the header: the same records give the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
        yield cast(BinaryIO, packed)

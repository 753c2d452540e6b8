"""JSON Lines looked up by a key, for what stands apart from the items: contexts and sources."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from pydantic import ValidationError

from spanlab.datasets.files import BOM, File, Row
from spanlab.datasets.limits import too_large
from spanlab.datasets.problems import input_error

_BUFFER = 1 << 16
_ENTRY = 250  # bytes of memory for a key and its place, without the key's letters


class RecordIndex:
    """JSON Lines looked up by a key of theirs; only where each key stands is kept in memory.

    A packed file, in which places cannot be gone back to cheaply, is unpacked to a temporary one.

    Args:
        file: the lines.
        key: the key of a line.

    Raises:
        InputError: the file cannot be read, a line has no key or is too large, or there are more
            keys than memory should hold.
    """

    def __init__(self, file: File, key: Callable[[Row], str]) -> None:
        self.name = file.name
        self._file = file
        self._places: dict[str, list[tuple[int, int]]] = {}
        file.head()
        self._unpacked: BinaryIO | None = None
        if file.packed():
            self._unpacked = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - stays open
            weakref.finalize(self, self._unpacked.close)
            with file.open() as stream:
                shutil.copyfileobj(stream, self._unpacked, _BUFFER)
        memory = 0
        with self._open() as stream:
            for row, place in file.lines(stream):
                if row.beginning.isspace():
                    continue
                name = self._key(key, row)
                self._places.setdefault(name, []).append((row.line, place))
                memory += _ENTRY + len(name)
                if memory > 2 * file.limit:  # of three; the rest is for records
                    raise too_large("the list of the keys", file.limit, file=file.name)

    def rows(self, key: str) -> Iterator[Row]:
        """Yield the lines with this key, in the file's order; none if there are none."""
        places = self._places.get(key)
        if places:
            with self._open() as stream:
                for number, place in places:
                    stream.seek(place)
                    yield self._file.row(number, stream.readline().removeprefix(BOM))

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self._unpacked is None:
            with self._file.open() as stream:
                yield stream
        else:
            self._unpacked.seek(0)
            yield self._unpacked

    def _key(self, key: Callable[[Row], str], row: Row) -> str:
        try:
            return key(row)
        except ValidationError as error:
            raise input_error(error).at(file=self.name, line=row.line) from None

"""How large a record may be, in one place for every reader: what it takes in memory once read.

A text that is not plain ASCII takes up to four bytes a character and every JSON value an object,
so that a small file can take much memory; and a packed one can unpack to any size. The one setting
is ``SPANLAB_RECORD_LIMIT`` (in MiB). Memory while reading stays below three times the limit.
"""

from __future__ import annotations

import io
from typing import BinaryIO

from spanlab.base.errors import InputError
from spanlab.base.settings import Settings

_MIB = 1 << 20
_PLAIN, _WIDE = 2, 5  # bytes of memory for a byte of ASCII, and of other text: itself and its copy
_VALUE = 100  # bytes of memory for a JSON value
TOGETHER = 8  # records' worth of memory that a reader may hold where it needs them all at once
DENSEST = _WIDE + _VALUE  # … for a byte of JSON that is a value of its own
MOST_COLUMNS = 5_000  # of a table: above any survey's, and an embedding's 4,096 beside texts
_RATIO = 100  # times its size that a packed file may unpack to; texts pack to a tenth at best
UNPACKED = f"the file, which unpacks to more than {_RATIO} times its size,"


def record_limit() -> int:
    """Return how many bytes of memory a record may take."""
    return Settings.read().record_limit * _MIB


def weight(raw: bytes, *, values: bool = True) -> int:
    """Return how many bytes of memory a text takes once it is read, as an upper bound.

    Args:
        raw: the text.
        values: whether it is JSON, whose values are counted, too.
    """
    wide = not raw.isascii() or (values and b"\\u" in raw)
    parts = sum(raw.count(mark) for mark in (b",", b"[", b"{")) if values else 0
    return len(raw) * (_WIDE if wide else _PLAIN) + parts * _VALUE


def longest(limit: int) -> int:
    """Return how many bytes a text may have at most, whatever they are."""
    return limit // _PLAIN


def most_unpacked(size: int, limit: int) -> int:
    """Return how many bytes a packed file of ``size`` bytes may unpack to."""
    return max(limit, _RATIO * size)


def too_large(what: str, limit: int, *, times: int = 1, **place: object) -> InputError:
    """Return the error for a record (or what ``what`` names) that exceeds the limit.

    Args:
        what: what is too large, such as "the record".
        limit: bytes of memory that a record may take.
        times: how many times as much this may take.
        place: ``file``, ``line`` and ``field`` of the error.
    """
    error = InputError(
        f"{what} is too large",
        expected=f"at most {times * limit // _MIB} MiB of memory; "
        f"SPANLAB_RECORD_LIMIT={2 * limit // _MIB} in the environment allows twice as much",
    )
    for name, value in place.items():
        setattr(error, name, value)
    return error


def too_many(what: str, limit: int, file: str, line: int) -> InputError:
    """Return the error for records that together take more than ``TOGETHER`` times the limit.

    Args:
        what: what is too large, such as "the file's processes".
        limit: bytes of memory that a record may take.
        file: what messages call the file.
        line: where it became too much.
    """
    return too_large(what, limit, times=TOGETHER, file=file, line=line)


class BoundedStream(io.RawIOBase):
    """A packed stream that ends with an error once it unpacks to what no honest file holds.

    Args:
        inner: what unpacks.
        size: bytes of the packed file.
        limit: bytes that any file may unpack to.
        name: what messages call the file.
    """

    def __init__(self, inner: BinaryIO, size: int, limit: int, name: str) -> None:
        self._inner = inner
        self._most = most_unpacked(size, limit)
        self._limit = limit
        self._name = name

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be gone back in."""
        return True

    # typeshed wants any buffer here; a BufferedReader, which alone calls this, gives a memoryview.
    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # as said above
        """Read into ``buffer``; raises InputError beyond the limit."""
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self._check()
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; raises InputError beyond the limit."""
        place = self._inner.seek(offset, whence)
        self._check()
        return place

    def tell(self) -> int:
        """Return the place in what was unpacked."""
        return self._inner.tell()

    def _check(self) -> None:
        if self._inner.tell() > self._most:
            raise too_large(UNPACKED, self._limit, file=self._name)

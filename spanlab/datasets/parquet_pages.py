"""How large the pages of a parquet file are once unpacked, by the header of each.

A file's metadata may say anything; what is unpacked is what the pages' own headers say. A header is
a Thrift structure in the compact protocol (parquet-format, ``PageHeader``): 1 the type, 2 and 3 the
sizes unpacked and packed, then structures that are skipped here.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO, Final, NamedTuple

_HEADER: Final = 1 << 20  # bytes of a header at most; statistics may hold a long text
_DICTIONARY: Final = 2  # the type of a dictionary page
_LONGEST_NUMBER: Final = 10  # bytes of a number of 64 bits
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS: Final = frozenset((4, 5, 6))
_DEEPEST: Final = 8  # structures inside each other; PageHeader has three


class UnpackedPage(NamedTuple):
    """The bytes of a page once unpacked; ``is_dictionary`` if it holds texts that rows repeat."""

    size: int
    is_dictionary: bool


def pages(stream: BinaryIO, start: int, end: int) -> Iterator[UnpackedPage]:
    """Yield the pages in bytes ``[start, end)`` of a file, without unpacking any.

    Raises:
        ValueError: there is no header where one must be.
    """
    while start < end:
        stream.seek(start)
        header = BytesIO(stream.read(min(_HEADER, end - start)))
        numbers = _struct(header, 0)
        kind, size, packed = (numbers.get(field, -1) for field in (1, 2, 3))
        if kind < 0 or size < 0 or packed < 0:
            raise ValueError(f"no page begins at byte {start:,}")
        yield UnpackedPage(size, kind == _DICTIONARY)
        start += header.tell() + packed


def _struct(data: BytesIO, depth: int) -> dict[int, int]:
    """Read a structure; returns its numbers by field, everything else is skipped."""
    if depth > _DEEPEST:
        raise ValueError("structures too deep for the header of a page")
    numbers: dict[int, int] = {}
    field = 0
    while head := _byte(data):
        kind = head & 0x0F
        field = field + (head >> 4) if head >> 4 else _signed(data)
        if kind in _NUMBERS:
            numbers[field] = _signed(data)
        else:
            _skip(data, kind, depth)
    return numbers


def _skip(data: BytesIO, kind: int, depth: int) -> None:
    if kind in {_TRUE, _FALSE}:
        return
    if kind == _BYTE:
        _take(data, 1)
    elif kind in _NUMBERS:
        _unsigned(data)
    elif kind == _DOUBLE:
        _take(data, 8)
    elif kind == _BINARY:
        _take(data, _unsigned(data))
    elif kind == _STRUCT:
        _struct(data, depth + 1)
    elif kind in {_LIST, _SET}:
        _skip_list(data, depth)
    else:
        raise ValueError(f"a value of the kind {kind} in the header of a page")


def _skip_list(data: BytesIO, depth: int) -> None:
    head = _byte(data)
    count = head >> 4 if head >> 4 < 15 else _unsigned(data)
    for _ in range(count):
        kind = head & 0x0F
        # Truth values have no byte of their own as fields, but one as elements.
        _skip(data, _BYTE if kind in {_TRUE, _FALSE} else kind, depth + 1)


def _signed(data: BytesIO) -> int:
    number = _unsigned(data)
    return (number >> 1) ^ -(number & 1)  # zigzag


def _unsigned(data: BytesIO) -> int:
    number = 0
    for place in range(_LONGEST_NUMBER):
        byte = _byte(data)
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number
    raise ValueError("a number without an end")


def _byte(data: BytesIO) -> int:
    return _take(data, 1)[0]


def _take(data: BytesIO, count: int) -> bytes:
    found = data.read(count)
    if len(found) < count:
        raise ValueError("the header of a page is cut off")
    return found

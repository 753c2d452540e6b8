"""Finding the records of a JSON file: on lines, in one array, printed, or in a list further in.

| the file | its records |
| --- | --- |
| one array | its elements |
| JSON Lines | the lines |
| objects printed over several lines, one after the other | these; lines between them are others' |
| one object | the list of objects in it that looks most like them, or the object itself |

A list is looked for in objects inside objects, not in lists inside lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, BinaryIO, Final, NamedTuple

from spanlab.base.errors import InputError
from spanlab.formats.arrays import elements, is_one_object, members
from spanlab.formats.files import BOM, FileRow, InputFile
from spanlab.formats.limits import longest

_LINES: Final = 20  # that are looked at to tell JSON Lines from other JSON
_HEAD: Final = 1 << 16  # bytes after which one record is enough
_DEEPEST: Final = 4  # objects inside each other in which lists are looked for
_WIDEST: Final = 1000  # members of an object that are looked at
_SAMPLES: Final = 5  # elements of a list that are looked at


class RecordList(NamedTuple):
    """A list of objects inside the one object of a file; ``first`` are the first of them."""

    path: str
    place: int  # byte at which it begins
    size: int  # how many elements it has
    first: Sequence[Mapping[str, Any]]


def first_objects(file: InputFile) -> list[dict[str, Any]]:
    """Return the JSON objects among the first lines, however long a line is; at least the first."""
    objects = []
    with file.open() as stream:
        for row, place in islice(file.lines(stream), _LINES):
            if isinstance(value := row.readable, dict):
                objects.append(value)
                if place + len(row.beginning) > _HEAD:
                    break
    return objects


def printed_objects(file: InputFile) -> Iterator[FileRow]:
    """Yield objects that stand on a line or, indented, on several, and the lines between them.

    An object on several lines begins with a line ``{`` and ends with a line ``}``, as ``jq`` and
    OpenTelemetry's console exporter print them. Blank lines are left out.
    """
    max_bytes = longest(file.limit)
    begun = 0  # the line of an object that is open
    text = bytearray()
    with file.open() as stream:
        for row, _ in file.lines(stream):
            line = row.beginning.rstrip()
            if begun or line == b"{":
                begun = begun or row.line
                text += row.beginning[: max_bytes + 1 - len(text)]
                if line == b"}":
                    yield file.row(begun, bytes(text))
                    begun = 0
                    text.clear()
            elif line:
                yield row
    if begun:
        yield file.row(begun, bytes(text))


def is_single(file: InputFile) -> bool:
    """Say whether the file is one JSON object."""
    with file.open() as stream:
        _skip_bom(stream)
        return is_one_object(stream)


def names_in_first(file: InputFile) -> set[str]:
    """Return the names in the first record of JSON Lines or of an array; none for another file."""
    value = next((row.readable for row in file.rows()), None)
    return set(value) if isinstance(value, dict) else set()


def names_in(file: InputFile) -> dict[str, Any]:
    """Return the members of the one object that a file is, what is inside them left out."""
    empty: dict[bytes, Any] = {b"[": [], b"{": {}}
    with file.open() as stream:
        _skip_bom(stream)
        return {member.name: empty.get(member.first) for member in islice(members(stream), _WIDEST)}


def record_lists(file: InputFile) -> list[RecordList]:
    """Return the lists of objects inside the one object of a file, in its order.

    Raises:
        InputError: the file is not valid JSON, or an element is too large.
    """
    with file.open() as stream:
        _skip_bom(stream)
        try:
            return list(_lists(file, stream, "", _DEEPEST))
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}", file=file.name) from None


def rows_at(file: InputFile, record_list: RecordList) -> Iterator[FileRow]:
    """Yield the elements of a list, numbered from 1."""
    with file.open() as stream:
        stream.seek(record_list.place)
        try:
            listed = elements(stream, longest(file.limit), alone=False)
            for number, raw in enumerate(listed, start=1):
                yield file.row(number, raw, "record", number)
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}", file=file.name) from None


def _lists(file: InputFile, stream: BinaryIO, prefix: str, depth: int) -> Iterator[RecordList]:
    inside = [member for member in islice(members(stream), _WIDEST) if member.first in (b"[", b"{")]
    for name, place, first_byte in inside:
        stream.seek(place)
        if first_byte == b"[":
            listed = RecordList(f"{prefix}{name}", place, *_sample_list(file, stream))
            if listed.first:
                yield listed
        elif depth > 1:
            yield from _lists(file, stream, f"{prefix}{name}.", depth - 1)


def _sample_list(file: InputFile, stream: BinaryIO) -> tuple[int, list[dict[str, Any]]]:
    """Return how many elements a list has, and those of its first that are objects."""
    objects, count = [], 0
    for raw in elements(stream, longest(file.limit), alone=False):
        count += 1
        if count <= _SAMPLES and isinstance(value := file.row(count, raw).readable, dict):
            objects.append(value)
    return count, objects


def _skip_bom(stream: BinaryIO) -> None:
    if stream.read(len(BOM)) != BOM:
        stream.seek(0)

"""The elements of a JSON array, or members of an object, one at a time: none is held as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from pydantic_core import from_json

_CHUNK = 1 << 18  # a group that repeats takes some forty times the bytes that it matches
_LONGEST_NAME = 1 << 10  # bytes of a member of an object that are looked at
_SPACE = b" \t\r\n"
_STRING = rb'[^"\\]*+(?>(?:\\.[^"\\]*+)*)'
_REST = re.compile(_STRING + b'("?)', re.DOTALL)  # of a string that an earlier chunk opened
# All up to a bracket, a string that stays open and, between elements, a comma.
_DEEP = re.compile(rb'(?>(?:[^"\[\]{}]++|"' + _STRING + b'")*)', re.DOTALL)
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_BETWEEN = re.compile(rb'(?>(?:[^"\[\]{},]++|"' + _STRING + b'")*)', re.DOTALL)
_NAME = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)


class _FilePiece(NamedTuple):
    """A part of the file, and which mark of the value's own ends it; empty inside a part of it."""

    text: bytes
    mark: bytes
    place: int  # byte of the stream at which it begins


class _ArrayElement(NamedTuple):
    """An element of an array or a member of an object, and the byte at which it begins."""

    text: bytes
    place: int


class Member(NamedTuple):
    """A member of a JSON object: its name, and where its value begins, with what."""

    name: str
    place: int
    first: bytes


def elements(stream: BinaryIO, max_bytes: int, *, alone: bool = True) -> Iterator[bytes]:
    """Yield the JSON of each element; whether it is valid is for its reader to say.

    Args:
        stream: a JSON array without a byte order mark, which begins where the stream is.
        max_bytes: bytes of an element that are kept; of a longer one, one more is yielded.
        alone: whether nothing may follow the array.

    Raises:
        ValueError: the stream is not one whole array.
    """
    return (element.text for element in _parts(stream, max_bytes, b"[]", alone=alone))


def members(stream: BinaryIO) -> Iterator[Member]:
    """Yield the members of the JSON object that begins where the stream is.

    Raises:
        ValueError: it is not one whole object.
    """
    for text, place in _parts(stream, _LONGEST_NAME, b"{}", alone=False):
        name = _NAME.match(text)
        if name is None:
            raise ValueError("a member of the object has no name")
        yield Member(str(from_json(name[1])), place + name.end(), text[name.end() : name.end() + 1])


def is_one_object(stream: BinaryIO) -> bool:
    """Say whether the stream is one JSON object and nothing else; its members are not looked at."""
    begun = ended = False
    for text, mark, _ in _pieces(stream):
        outside = text.strip(_SPACE) if not begun or ended else b""
        if outside or mark in (b"[", b"]") or (begun and mark == b"{"):
            return False
        begun, ended = begun or mark == b"{", ended or mark == b"}"
    return ended


def _parts(
    stream: BinaryIO, max_bytes: int, marks: bytes, *, alone: bool
) -> Iterator[_ArrayElement]:
    opening, closing = marks[:1], marks[1:]
    kind = "array" if opening == b"[" else "object"
    element = bytearray()
    begun = ended = False
    count = place = 0
    for text, mark, at in _pieces(stream):
        if begun and not ended:
            bare = text if element else text.lstrip(_SPACE)
            place = place if element else at + len(text) - len(bare)
            element += bare[: max_bytes + 1 - len(element)]
        elif text.strip(_SPACE) or (begun and mark):
            raise ValueError(f"something stands outside of the {kind}")
        if mark not in (opening, closing, b",", b""):
            raise ValueError(f"it is not one {kind}")
        begun = begun or mark == opening
        if mark in (b",", closing):
            stripped = bytes(element).rstrip(_SPACE)
            element.clear()
            ended = mark == closing
            if stripped:
                count += 1
                yield _ArrayElement(stripped, place)
            elif count or not ended:
                raise ValueError(f"there is nothing between two commas after element {count}")
            if ended and not alone:
                return
    if not ended:
        raise ValueError(f"the file ends inside the {kind}")


def _pieces(stream: BinaryIO) -> Iterator[_FilePiece]:
    depth = 0
    inside = False  # a string
    unread = b""
    data_begin = stream.tell()  # bytes in front of the data at hand
    while chunk := stream.read(_CHUNK):
        data = unread + chunk
        begin = at = 0
        while at < len(data):
            if inside and (string_end := _REST.match(data, at)):
                at, inside = string_end.end(), not string_end[1]
                if inside:
                    break
            if plain := (_BETWEEN if depth == 1 else _DEEP).match(data, at):
                at = plain.end()
            mark = data[at : at + 1]
            at += len(mark)
            inside = mark == b'"'
            step = _STEPS.get(mark, 0)
            if mark and not inside and max(depth, depth + step) == 1:
                yield _FilePiece(data[begin : at - 1], mark, data_begin + begin)
                begin = at
            depth += step
        yield _FilePiece(data[begin:at], b"", data_begin + begin)
        unread = data[at:]
        data_begin += at

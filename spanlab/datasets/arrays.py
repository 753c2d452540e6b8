"""The elements of one JSON array, one at a time, so that a large one is never held as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_CHUNK = 1 << 20
_SPACE = b" \t\r\n"
_STRING = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_REST = re.compile(_STRING + b'("?)', re.DOTALL)  # of a string that an earlier chunk opened
# All up to a bracket, a string that stays open and, between elements, a comma.
_DEEP = re.compile(rb'(?:[^"\[\]{}]++|"' + _STRING + b'")*+', re.DOTALL)
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_BETWEEN = re.compile(rb'(?:[^"\[\]{},]++|"' + _STRING + b'")*+', re.DOTALL)


class _Piece(NamedTuple):
    """A part of the file, and which mark of the array's own ends it; empty inside an element."""

    text: bytes
    mark: bytes


def elements(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the JSON of each element; whether it is valid is for its reader to say.

    Args:
        stream: a JSON array without a byte order mark.
        most: bytes of an element that are kept; of a longer one ``most + 1`` are yielded.

    Raises:
        ValueError: the stream is not one whole array.
    """
    element = bytearray()
    begun = ended = False
    count = 0
    for text, mark in _pieces(stream):
        if begun and not ended:
            element += (text if element else text.lstrip(_SPACE))[: most + 1 - len(element)]
        elif text.strip(_SPACE) or (begun and mark):
            raise ValueError("something stands outside of the array")
        if mark in (b"{", b"}"):
            raise ValueError("it is not one array")
        begun = begun or mark == b"["
        if mark in (b",", b"]"):
            found = bytes(element).rstrip(_SPACE)
            element.clear()
            ended = mark == b"]"
            if found:
                count += 1
                yield found
            elif count or not ended:
                raise ValueError(f"there is nothing between two commas after element {count}")
    if not ended:
        raise ValueError("the file ends inside the array")


def _pieces(stream: BinaryIO) -> Iterator[_Piece]:
    depth = 0
    inside = False  # a string
    left = b""
    while chunk := stream.read(_CHUNK):
        data = left + chunk
        begin = at = 0
        while at < len(data):
            if inside and (rest := _REST.match(data, at)):
                at, inside = rest.end(), not rest[1]
                if inside:
                    break
            if plain := (_BETWEEN if depth == 1 else _DEEP).match(data, at):
                at = plain.end()
            mark = data[at : at + 1]
            at += len(mark)
            inside = mark == b'"'
            step = _STEPS.get(mark, 0)
            if mark and not inside and max(depth, depth + step) == 1:
                yield _Piece(data[begin : at - 1], mark)
                begin = at
            depth += step
        yield _Piece(data[begin:at], b"")
        left = data[at:]

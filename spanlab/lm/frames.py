"""How a process and the keeper of its model calls talk: a JSON object and bytes at a time.

Each side waits for the other in turn, so that nothing ever comes after what is being waited for.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

_LENGTHS = struct.Struct("!II")  # bytes of the object, and of what comes after it
_CHUNK = 1 << 16

Told = tuple[dict[str, Any], bytes]


def pack(head: Mapping[str, object], body: bytes) -> bytes:
    """Return an object and bytes as they are sent."""
    packed = json.dumps(head).encode()
    return _LENGTHS.pack(len(packed), len(body)) + packed + body


def receive(connection: socket.socket) -> Told:
    """Wait for an object and bytes, in a thread.

    Raises:
        EOFError: the other side is gone.
        OSError: the connection broke.
    """
    data = bytearray()
    while (told := _unpack(data)) is None:
        _take(data, connection.recv(_CHUNK))
    return told


async def receive_here(connection: socket.socket) -> Told:
    """Do what ``receive`` does, in the running event loop."""
    loop, data = asyncio.get_running_loop(), bytearray()
    while (told := _unpack(data)) is None:
        _take(data, await loop.sock_recv(connection, _CHUNK))
    return told


def _take(data: bytearray, chunk: bytes) -> None:
    if not chunk:
        raise EOFError
    data += chunk


def _unpack(data: bytearray) -> Told | None:
    """Return what has come, None as long as something of it is missing."""
    if len(data) < _LENGTHS.size:
        return None
    head, body = _LENGTHS.unpack_from(data)
    if len(data) < _LENGTHS.size + head + body:
        return None
    begin = _LENGTHS.size + head
    return json.loads(data[_LENGTHS.size : begin]), bytes(data[begin : begin + body])

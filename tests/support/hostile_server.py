"""Serves these very bytes to what reads pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from spanlab.search.pages import PageReader

Body = bytes | Iterable[bytes]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
TALL = b"<p>The tower is tall.</p>"


@asynccontextmanager
async def serving(sent: Body) -> AsyncIterator[tuple[PageReader, str, list[str]]]:
    """Serve these very bytes; gives what reads them, the address and what was asked for."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        asked.append(path)
        missing = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        pieces = [missing] if path == "/robots.txt" else [sent] if isinstance(sent, bytes) else sent
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            pass  # the reader has had enough
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        allowed = frozenset([f"127.0.0.1:{port}"])
        yield (
            PageReader(allowed=allowed, pause=0.0, seconds=20.0),
            f"http://127.0.0.1:{port}/",
            asked,
        )


def body(data: bytes, kind: bytes = b"text/html") -> bytes:
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (kind, len(data)) + data

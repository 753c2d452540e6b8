"""A network cable between a worker and a server, on any machine: it can be pulled and put back.

A relay of TCP connections. While it is pulled nothing passes and nobody is told; what was sent
into it arrives once it is back, as TCP sends it again. ``give_up`` is what a server does after a
while with connections whose other end is silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Self

from spanlab.testing import InBackground

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(eq=False)
class _Link:
    """One connection: the client's end, and the server's."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    given_up: bool = False


class Cable(InBackground):
    """A cable to the server that ``connect`` reaches; clients have their end at ``port``."""

    def __init__(self, connect: Callable[[], Awaitable[Streams]]) -> None:
        super().__init__("cable")
        self.port = 0
        self._connect = connect
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self._whole = asyncio.Event()
        self._whole.set()

    @classmethod
    def to_socket(cls, path: str) -> Self:
        """Return a cable to a server on a Unix socket."""
        return cls(lambda: asyncio.open_unix_connection(path))

    @classmethod
    def to_port(cls, port: int) -> Self:
        """Return a cable to a server on a port of this machine."""
        return cls(lambda: asyncio.open_connection("127.0.0.1", port))

    def pull(self) -> None:
        """Let nothing pass from now on."""
        self._call(self._whole.clear)

    def give_up(self) -> None:
        """Let the server close every connection, of which the clients do not hear yet."""
        self._call(self._give_up)

    def put_back(self) -> None:
        """Let everything pass again; connections that were given up are found to be so."""
        self._call(self._put_back)

    @contextlib.contextmanager
    def pulled(self) -> Iterator[None]:
        """Pull the cable for as long as the block runs."""
        self.pull()
        try:
            yield
        finally:
            self.put_back()

    def _call(self, act: Callable[[], None]) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(act)
        self._loop.call_soon_threadsafe(done.set)
        done.wait()

    def _give_up(self) -> None:
        for link in self._links:
            link.given_up = True
            link.server.transport.abort()

    def _put_back(self) -> None:
        for link in [link for link in self._links if link.given_up]:
            link.client.transport.abort()
        self._whole.set()

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server:
            self._server.close()
            self._server = None
        links = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.sleep(0)  # each has begun, and closes what it holds
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._server is None:
                return
            await self._whole.wait()
            there, back = await self._connect()
            link = _Link(writer, back)
            self._links.add(link)
            try:
                await asyncio.gather(
                    self._pass(reader, back, link), self._pass(there, writer, link)
                )
            finally:
                self._links.discard(link)
                back.transport.abort()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
        await self._whole.wait()
        if not writer.transport.is_closing():
            writer.close()

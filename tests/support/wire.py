"""A server that sends these very bytes, however wrong, until the other side has had enough."""

from __future__ import annotations

import gzip
import json
import socketserver
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

MIB = 2**20


@dataclass
class Wire:
    """The server's address, what it was asked, and how many bytes were taken from it."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    sent: int = 0


@contextmanager
def wire(answer: Callable[[str, bytes], Iterable[bytes]]) -> Iterator[Wire]:
    """Serve what ``answer`` gives for a request's first line and body; then close."""
    served = Wire()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            line = self.rfile.readline().decode("latin-1").strip()
            length = 0
            while (header := self.rfile.readline().strip().lower()) != b"":
                if header.startswith(b"content-length:"):
                    length = int(header.partition(b":")[2])
            body = self.rfile.read(length)
            served.asked.append(line)
            with suppress(OSError):
                for piece in answer(line, body):
                    self.wfile.write(piece)
                    served.sent += len(piece)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close = True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield served
        finally:
            server.shutdown()


def head(
    status: int = 200, *lines: str, version: str = "1.1", kind: str = "application/json"
) -> bytes:
    """Return the beginning of a reply that ends when the connection does."""
    all_lines = [f"HTTP/{version} {status} x", f"Content-Type: {kind}", "Connection: close", *lines]
    return "\r\n".join([*all_lines, "", ""]).encode()


def endless(piece: bytes = b"x" * 2**16) -> Iterable[bytes]:
    """Give the same bytes for ever."""
    return repeat(piece)


def chunked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Give pieces as HTTP sends them that have no length."""
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def bomb(size: int) -> bytes:
    """Return gzip of so many zeros."""
    return gzip.compress(bytes(size))


def twice(size: int) -> bytes:
    """Return gzip of gzip of so many zeros."""
    return gzip.compress(bomb(size))


def bare(data: bytes) -> bytes:
    """Return deflate without a head, as some servers send it."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def dense(values: int = 1_100_000) -> bytes:
    """Return JSON of so many lists: 3 bytes each, and 60 in memory."""
    return b"[" + b"[]," * values + b"[]]"


# What a server may send in place of a reply, whatever the protocol: it has an end that is said in
# words, and no more than the limit (here in MiB) is read of it.
HOSTILE: dict[str, Callable[[], Iterable[bytes]]] = {
    "no length": lambda: _after(head(), endless()),
    "HTTP/1.0": lambda: _after(head(version="1.0"), endless()),
    "chunked": lambda: _after(head(200, "Transfer-Encoding: chunked"), chunked(endless())),
    "an error": lambda: _after(head(500), endless()),
    "a redirect": lambda: _after(head(302, "Location: /x"), endless()),
    "Text/JSON": lambda: _after(head(kind="Application/JSON; Charset=x"), endless()),
    "gzip": lambda: [head(200, "Content-Encoding: GZIP"), bomb(64 * MIB)],
    "deflate": lambda: [head(200, "Content-Encoding: deflate"), bare(bytes(64 * MIB))],
    "gzip twice": lambda: [head(200, "Content-Encoding: gzip, gzip"), twice(64 * MIB)],
    "gzip in two lines": lambda: [
        head(200, "Content-Encoding: gzip", "Content-Encoding: gzip"),
        twice(64 * MIB),
    ],
    "an unknown packing": lambda: [head(200, "Content-Encoding: br"), b"x"],
    "no gzip": lambda: [head(200, "Content-Encoding: gzip"), b"no gzip"],
    "garbage after gzip": lambda: _after(
        head(200, "Content-Encoding: gzip") + gzip.compress(b"{}"), endless()
    ),
    "many lists": lambda: [head(), dense()],
    "deep lists": lambda: [head(), b"[" * 200_000],
    "half a list": lambda: [head(200, "Content-Length: 1000"), b"[1"],
    "a long number": lambda: [head(), b"[" + b"9" * 5000 + b"]"],
    "a long head": lambda: _after(b"HTTP/1.1 200 x\r\n", endless(b"X-A: b\r\n" * 1000)),
    "no UTF-8": lambda: [head(), b'{"a": "\xed\xa0\xbd\xff"}'],
    "nothing": list,
}


def _after(first: bytes, others: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from others


def as_json(value: Any) -> list[bytes]:
    """Return a sound reply."""
    body = json.dumps(value).encode()
    return [head(200, f"Content-Length: {len(body)}"), body]

"""What is posted to other programs: a collector of telemetry, an address for webhooks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from answering import Silent, answering


@dataclass(frozen=True)
class Posted:
    """A request."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Receiver:
    """Takes what comes; ``statuses`` answer the first requests, ``delay`` seconds late."""

    posted: list[Posted] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    delay: float = 0.0
    url: str = ""

    def after(self, count: int, seconds: float = 30.0) -> list[Posted]:
        """Return what has come once so many requests have."""
        until = time.monotonic() + seconds
        while len(self.posted) < count and time.monotonic() < until:
            time.sleep(0.02)
        assert len(self.posted) == count, self.posted
        return self.posted


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Listen until the block ends."""
    receiver = Receiver()
    ended = threading.Event()

    class Answer(Silent, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.posted.append(Posted(self.path, dict(self.headers), body))
            ended.wait(receiver.delay)
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
            self.send_header("Location", "/elsewhere")  # where a redirect would lead
            self.send_header("Content-Length", "0")
            self.end_headers()

    with answering(Answer) as receiver.url:
        try:
            yield receiver
        finally:
            ended.set()

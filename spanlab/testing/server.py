"""The scripted model's server."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from spanlab.testing.modes import MODES
from spanlab.testing.protocol import EVENTS, embedded, streamed, with_usage
from spanlab.testing.replies import ModelRequest, Script, ScriptedReply, caller_with, fail, say

_END = b"\n\n"  # of an event
_ROUNDS = 10  # of the loop, after it is closed, for connections that came in the last moment


class InBackground(ABC):
    """Opens when the block begins and closes when it ends, both in the thread's loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._opened = Future[None]()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._opened.result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @abstractmethod
    async def _open(self) -> None:
        """Begin to serve; an error, of a taken port say, is raised where the block begins."""

    @abstractmethod
    async def _close(self) -> None:
        """Serve no more, even if it never began; whoever joins after that is turned away."""

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        refused = None
        try:
            self._loop.run_until_complete(self._open())
        except Exception as error:  # noqa: BLE001 - raised where the block begins
            refused = error
        else:
            self._opened.set_result(None)
            self._loop.run_forever()
        self._loop.run_until_complete(self._close())
        self._loop.run_until_complete(_settle())
        self._loop.close()
        if refused is not None:
            self._opened.set_exception(refused)


async def _settle() -> None:
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)


class ModelServer(InBackground):
    """A scripted endpoint that serves for as long as its ``with`` block runs.

    Args:
        script: what answers each request; without one every answer is "ok".
        latency: seconds before every reply.
        host: the address to listen on.
        port: the port to listen on; 0 is any free one.
        log: a file that gets one JSON line when a request comes and one when it is answered.
        keep: whether requests stay in ``requests``; not needed where there are very many.

    ``mode`` is one of ``MODES``: how the script's replies are wrapped from the next request on.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        latency: float = 0.0,
        host: str = "127.0.0.1",
        port: int = 0,
        log: Path | None = None,
        keep: bool = True,
    ) -> None:
        super().__init__("model-server")
        self.latency = latency
        self.mode = "as-meant"
        self.host = host
        self.requests: list[ModelRequest] = []
        self.answered: dict[int, float] = {}  # when, by number; without callers that had left
        self.count = 0
        self.busiest = 0  # most requests that were open at once
        self.closed = False
        self.windows: dict[str, int] = {}  # tokens that each model takes, as GET /models lists them
        self.port = port
        self._keep = keep
        self._under_way = 0
        self._script = script or (lambda ask: say("ok"))
        self._log: TextIO | None = log.open("a", buffering=1) if log else None
        self._connections: set[_ClientConnection] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The base URL for ``OPENAI_BASE_URL``."""
        return f"http://{self.host}:{self.port}/v1"

    def script(self, script: Script) -> None:
        """Change the answers from the next request on."""
        self._script = script

    def fingerprints(self) -> list[str]:
        """Return the requests' fingerprints in the order of their coming."""
        return [ask.fingerprint for ask in self.requests]

    @property
    def connected(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def _open(self) -> None:
        self._server = await self._loop.create_server(
            lambda: _ClientConnection(self, self._connections), self.host, self.port, backlog=4096
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server:
            self._server.close()
        self.closed = True
        for connection in list(self._connections):
            connection.close()
        if self._log:
            self._log.close()
            self._log = None

    def answer(
        self, method: str, path: str, headers: dict[str, str], raw: bytes, caller: str = ""
    ) -> _ServerAnswer:
        """Ask the script; runs in the server's loop."""
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {"unreadable": raw.decode("utf-8", "replace")}
        ask = ModelRequest(self.count, method, path, body, headers, time.time(), caller)
        self.count += 1
        self._under_way += 1
        self.busiest = max(self.busiest, self._under_way)
        if self._keep:
            self.requests.append(ask)
        self._note("asked", ask)
        try:
            listing = method == "GET" and path.endswith("/models")
            meant = _models(self.windows) if listing else self._script(ask)
            if isinstance(meant.body, dict) and "choices" in meant.body:
                meant = self._completed(ask, meant)
            reply = streamed(ask, MODES[self.mode].change(ask, meant))
        except Exception as error:  # noqa: BLE001 - a script's mistake must show in the test
            reply = fail(500, f"the script failed: {error!r}")
        return _ServerAnswer(self, ask, reply)

    def _completed(self, ask: ModelRequest, meant: ScriptedReply) -> ScriptedReply:
        """Return a chat completion with its usage; vectors where these are asked for."""
        if ask.wants_vectors:
            return replace(embedded(ask), delay=meant.delay)
        return replace(meant, body=with_usage(meant.body, ask))

    def done(self, ask: ModelRequest) -> None:
        """Note that the reply is on its way."""
        self._under_way -= 1
        self._note("answered", ask)

    def replied(self, ask: ModelRequest) -> None:
        """Note when the reply goes out."""
        if self._keep:
            self.answered[ask.number] = time.time()

    def _note(self, event: str, ask: ModelRequest) -> None:
        if self._log:
            line = {"event": event, "number": ask.number, "asked": ask.fingerprint}
            self._log.write(json.dumps(line) + "\n")


@dataclass(frozen=True)
class _ServerAnswer:
    server: ModelServer
    ask: ModelRequest
    reply: ScriptedReply

    def encoded(self) -> bytes:
        """Return the reply as it goes over the wire."""
        body = self.reply.body
        text = "" if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False)
        # Half an emoji has no UTF-8, but its escape is JSON.
        raw = body if isinstance(body, bytes) else text.encode(errors="backslashreplace")
        lines = [f"HTTP/1.1 {self.reply.status} scripted", f"Content-Length: {len(raw)}"]
        lines += [f"{name}: {value}" for name, value in self.reply.headers.items()]
        if "Content-Type" not in self.reply.headers:
            lines.append("Content-Type: application/json")
        return "\r\n".join([*lines, "", ""]).encode() + raw

    def pieces(self) -> Iterator[bytes]:
        """Yield what is sent at once: all, or with a pause a byte, or an event of a stream."""
        raw = self.encoded()
        if not self.reply.pause:
            yield raw
        elif self.reply.headers.get("Content-Type") == EVENTS:
            yield from (event + _END for event in raw.removesuffix(_END).split(_END))
        else:
            yield from (raw[at : at + 1] for at in range(len(raw)))


def _models(windows: Mapping[str, int]) -> ScriptedReply:
    """List models as vLLM does."""
    models = [{"id": name, "max_model_len": window} for name, window in windows.items()]
    return ScriptedReply(body={"object": "list", "data": models})


class _ClientConnection(asyncio.Protocol):
    """One keep-alive connection: requests one after the other."""

    def __init__(self, server: ModelServer, connections: set[_ClientConnection]) -> None:
        self._server = server
        self._connections = connections
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)
        if self._server.closed:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._connections.discard(self)

    def close(self) -> None:
        if self._transport:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
            headers = dict(_header(line) for line in lines)
            length = int(headers.get("content-length", "0"))
            if len(self._buffer) < end + 4 + length:
                return
            raw = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            method, path, _ = first.split(" ", 2)
            key = headers.pop("authorization", "").removeprefix("Bearer ")
            self._reply(self._server.answer(method, path, headers, raw, caller_with(key)))

    def _reply(self, answer: _ServerAnswer) -> None:
        if answer.reply.hang:
            return
        delay = answer.reply.delay + self._server.latency
        if delay:
            asyncio.get_running_loop().call_later(delay, self._send, answer)
        else:
            self._send(answer)

    def _send(self, answer: _ServerAnswer) -> None:
        self._server.done(answer.ask)
        if self._transport is None:
            return
        if answer.reply.drop:
            self._transport.abort()
        else:
            self._server.replied(answer.ask)
            self._write(answer.pieces(), answer.reply.pause)

    def _write(self, left: Iterator[bytes], pause: float) -> None:
        """Write the next of what is left to be sent, and after a pause the others."""
        piece = next(left, b"")
        if self._transport is not None and piece:
            self._transport.write(piece)
            if pause:
                asyncio.get_running_loop().call_later(pause, self._write, left, pause)


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()

"""A language model's HTTP endpoint on this machine, with scripted answers.

It speaks OpenAI's chat protocol over real sockets, so that what is tested is what runs: clients,
time limits, retries and all. One asyncio loop in a thread of its own (or in a process of its own,
through serve.py) answers thousands of requests a second.

    with ModelServer(lambda ask: say("4")) as server:
        ...  # server.url is an OpenAI base URL, server.requests what came in
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from in_background import InBackground

SCHEMA_TOKENS = 4  # characters that count as a token in the usage of an answer


@dataclass(frozen=True)
class Ask:
    """One request as it came in; ``headers`` are lower-case and without the key.

    ``caller`` tells apart who has which key: see ``caller_with``.
    """

    number: int
    method: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    caller: str = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The chat messages."""
        return list(self.body.get("messages", []))

    @property
    def text(self) -> str:
        """All messages' text, one after the other."""
        return "\n\n".join(str(message.get("content") or "") for message in self.messages)

    @property
    def fingerprint(self) -> str:
        """The same for two requests that ask the same."""
        return hashlib.sha256(json.dumps(self.body, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Reply:
    """What goes back; ``hang`` never answers and ``drop`` closes the connection instead."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    hang: bool = False
    drop: bool = False


Script = Callable[[Ask], Reply]


def caller_with(key: str) -> str:
    """Return the ``caller`` of requests with a key."""
    return hashlib.sha256(f"Bearer {key}".encode()).hexdigest()[:8]


def say(
    text: str | None,
    *,
    finish: str = "stop",
    cached: int = 0,
    refusal: str | None = None,
    delay: float = 0.0,
    **more: Any,
) -> Reply:
    """Answer like a chat model; ``more`` goes into the body (``citations``, ``usage`` …)."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "cached_tokens": cached,
        **more,
    }
    return Reply(body=body, delay=delay)


def fail(
    status: int,
    message: str = "scripted",
    *,
    code: str | None = None,
    retry_after: float | None = None,
) -> Reply:
    """Answer with an error in OpenAI's form."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return Reply(status, {"error": {"message": message, "code": code, "type": code}}, headers)


def in_turn(*replies: Reply | Script) -> Script:
    """Give one reply after the other; the last one stays."""
    left = list(replies)

    def script(ask: Ask) -> Reply:
        reply = left.pop(0) if len(left) > 1 else left[0]
        return reply(ask) if callable(reply) else reply

    return script


def rules(*pairs: tuple[str, Reply | Script], otherwise: Reply | Script) -> Script:
    """Give the reply of the first pair whose words stand in the prompt."""

    def script(ask: Ask) -> Reply:
        reply = next((reply for words, reply in pairs if words in ask.text), otherwise)
        return reply(ask) if callable(reply) else reply

    return script


class ModelServer(InBackground):
    """The endpoint; ``latency`` in seconds holds for every reply, ``log`` gets JSON lines."""

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
        self.host = host
        self.requests: list[Ask] = []
        self.answered: dict[int, float] = {}  # by number; when to who still listened
        self.count = 0
        self.busiest = 0  # most requests that were open at once
        self.closed = False
        self.port = port
        self._keep = keep
        self._under_way = 0
        self._script = script or (lambda ask: say("ok"))
        self._log: TextIO | None = log.open("a", buffering=1) if log else None
        self._connections: set[_Connection] = set()
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
        """How many connections are open; none of a process that has ended and was heard out."""
        return len(self._connections)

    async def _open(self) -> None:
        self._server = await self._loop.create_server(
            lambda: _Connection(self, self._connections), self.host, self.port, backlog=4096
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
    ) -> _Answer:
        """Ask the script; runs in the server's loop."""
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {"unreadable": raw.decode("utf-8", "replace")}
        ask = Ask(self.count, method, path, body, headers, time.time(), caller)
        self.count += 1
        self._under_way += 1
        self.busiest = max(self.busiest, self._under_way)
        if self._keep:
            self.requests.append(ask)
        self._note("asked", ask)
        try:
            reply = self._script(ask)
        except Exception as error:  # noqa: BLE001 - a script's mistake must show in the test
            reply = fail(500, f"the script failed: {error!r}")
        return _Answer(self, ask, reply)

    def done(self, ask: Ask) -> None:
        """Note that the reply is on its way."""
        self._under_way -= 1
        self._note("answered", ask)

    def replied(self, ask: Ask) -> None:
        """Note when the reply goes out."""
        if self._keep:
            self.answered[ask.number] = time.time()

    def _note(self, event: str, ask: Ask) -> None:
        if self._log:
            line = {"event": event, "number": ask.number, "asked": ask.fingerprint}
            self._log.write(json.dumps(line) + "\n")


@dataclass(frozen=True)
class _Answer:
    server: ModelServer
    ask: Ask
    reply: Reply

    def encoded(self) -> bytes:
        """The reply as it goes over the wire, with usage filled in."""
        body = self.reply.body
        if isinstance(body, dict) and "choices" in body:
            body = _with_usage(body, self.ask)
        raw = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        lines = [f"HTTP/1.1 {self.reply.status} scripted", f"Content-Length: {len(raw)}"]
        lines += [f"{name}: {value}" for name, value in self.reply.headers.items()]
        if "Content-Type" not in self.reply.headers:
            lines.append("Content-Type: application/json")
        return "\r\n".join([*lines, "", ""]).encode() + raw


def _with_usage(body: dict[str, Any], ask: Ask) -> dict[str, Any]:
    body = dict(body)
    cached = body.pop("cached_tokens", 0)
    asked = len(ask.text) // SCHEMA_TOKENS + 1
    answered = len(str(body["choices"][0]["message"]["content"] or "")) // SCHEMA_TOKENS + 1
    usage = {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {"model": ask.body.get("model", "scripted"), "usage": usage, **body}


class _Connection(asyncio.Protocol):
    """One keep-alive connection: requests one after the other."""

    def __init__(self, server: ModelServer, connections: set[_Connection]) -> None:
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

    def _reply(self, answer: _Answer) -> None:
        if answer.reply.hang:
            return
        delay = answer.reply.delay + self._server.latency
        if delay:
            asyncio.get_running_loop().call_later(delay, self._send, answer)
        else:
            self._send(answer)

    def _send(self, answer: _Answer) -> None:
        self._server.done(answer.ask)
        if self._transport is None:
            return
        if answer.reply.drop:
            self._transport.abort()
        else:
            self._server.replied(answer.ask)
            self._transport.write(answer.encoded())


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()


def texts(replies: Sequence[str]) -> Script:
    """Answer with these texts in turn; the last one stays."""
    return in_turn(*(say(text) for text in replies))

"""The gate of every service that listens: it checks keys and roles, and bounds slow requests."""

from __future__ import annotations

import asyncio
import json
import resource
import secrets
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, ClassVar, Final

import uvicorn
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool
from uvicorn.protocols.http.h11_impl import H11Protocol

from spanlab.base.errors import StoreError, UsageError
from spanlab.base.settings import Settings
from spanlab.schema import OWNER, Actor, Permission, storable_escapes
from spanlab.ui.server_files import LOOPBACK

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

KEY: Final = Settings.variable("api_key")  # holds the key of all services
PATIENCE: Final = 10.0  # seconds for the head of a request, and as many for its body
LARGEST: Final = 4 * 2**20  # bytes of a request
_REASON: Final = 300  # characters
_SHORTEST: Final = 16  # characters of a key
_SLOWEST: Final = 50_000  # bytes of a body that give its sender another second
_BEARER: Final = b"Bearer "
_CLOSE: Final = (b"connection", b"close")
ACTOR: Final = "spanlab.actor"  # in the scope of a request that has passed: who asks


def check_key(key: str, host: str | None = None, *, has_other_keys: bool = False) -> None:
    """Check the key with which a service is to listen.

    Args:
        key: the key, empty for none.
        host: where the service listens, if it needs no key on this machine alone.
        has_other_keys: whether there are keys of `spanlab keys`, so that this one may be missing.

    Raises:
        UsageError: the key is missing or too short.
    """
    if not key and (has_other_keys or (host is not None and host in LOOPBACK)):
        return
    if len(key) < _SHORTEST:
        listening = "" if host is None else f" to listen at {host}"
        raise UsageError(
            f"set {KEY} to a key of at least {_SHORTEST} characters{listening}, or make one with "
            "`spanlab keys create`"
        )


class Gate:
    """Lets requests with a valid key through, and refuses others at once.

    Nobody waits here: keys are random and long, so that slowness would protect nothing, and callers
    who are kept waiting hold connections that those with the right key need.

    Args:
        app: the ASGI application behind the gate.
        key: the owner's key, expected as ``Authorization: Bearer KEY``; empty for none.
        open_paths: paths that need no key.
        bearer: finds who holds another key, None for nobody; without it, and without ``key``,
            every request is let through as the owner's.
        patience: seconds until a body has to be complete; each 50,000 bytes add another one.
    """

    def __init__(
        self,
        app: ASGIApp,
        key: str,
        open_paths: Collection[str] = (),
        bearer: Callable[[str], Actor | None] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._app, self._key = app, _BEARER + key.encode() if key else None
        self._open, self._patience, self._bearer = open_paths, patience, bearer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have it answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif {b"content-length", b"transfer-encoding"} <= dict(scope["headers"]).keys():
            # A proxy in front may go by the other one, and take the rest for another request.
            words = "the request has both Content-Length and Transfer-Encoding"
            await refuse(send, 400, words, _CLOSE)
        elif scope["path"] in self._open:
            await self._pass_on(scope, receive, send)
        elif (actor := await self._actor_of(dict(scope["headers"]))) is not None:
            await self._pass_on({**scope, ACTOR: actor}, receive, send)
        else:
            words = "the header Authorization has no key that is known: Bearer KEY"
            await refuse(send, 401, words, (b"www-authenticate", b"Bearer"))

    async def _actor_of(self, headers: dict[bytes, bytes]) -> Actor | None:
        header = headers.get(b"authorization", b"")
        if self._key is not None and secrets.compare_digest(header, self._key):
            return OWNER
        if self._bearer is None:
            return OWNER if self._key is None else None
        if not header.startswith(_BEARER):
            return None
        token = header.removeprefix(_BEARER).decode(errors="replace")
        try:
            return await run_in_threadpool(self._bearer, token)
        except StoreError:  # the database is away: nobody is known
            return None

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application; refuse it if its body does not come in time."""
        until = time.monotonic() + self._patience
        is_whole = is_late = has_answer = False

        async def receive_in_time() -> Message:
            nonlocal until, is_whole, is_late
            if is_whole:  # what comes now is that the caller has gone
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(until - time.monotonic(), 0.0))
            except TimeoutError:
                is_late = True
                return {"type": "http.disconnect"}
            until += len(message.get("body", b"")) / _SLOWEST
            is_whole = not message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            nonlocal has_answer
            if has_answer or not is_late:
                has_answer = True
                await send(message)

        await self._app(scope, receive_in_time, answer)
        if is_late and not has_answer:
            await refuse(send, 408, "the request was begun and did not come to its end", _CLOSE)


class RoleCheck:
    """Lets a request through if its actor's role allows it.

    Args:
        app: the ASGI application behind the check.
        needed: returns the permission for a method and path; None for none.
    """

    def __init__(self, app: ASGIApp, needed: Callable[[str, str], Permission | None]) -> None:
        self._app, self._needed = app, needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have it answered."""
        needed = self._needed(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if needed is not None and not scope[ACTOR].may_somewhere(needed):
            words = f"this key may not {needed.value}: a lead makes others (spanlab keys create)"
            await refuse(send, 403, words)
        else:
            await self._app(scope, receive, send)


class JsonBodies:
    """Lets requests through whose bodies are valid JSON or empty, whatever their headers say.

    Half an emoji in them, where a text was cut off, is replaced.

    Args:
        app: the ASGI application behind the check.
        other_paths: paths whose bodies are no JSON; their handlers bound them.
    """

    def __init__(self, app: ASGIApp, other_paths: Collection[str] = ()) -> None:
        self._app, self._others = app, other_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have it answered."""
        if scope["type"] != "http" or scope["path"] in self._others:
            await self._app(scope, receive, send)
            return
        body, has_more = bytearray(), True
        while has_more:
            message = await receive()
            if message["type"] != "http.request":
                return  # the caller has gone
            body += message.get("body", b"")
            has_more = message.get("more_body", False)
            if len(body) > LARGEST:
                await refuse(send, 413, f"the request is larger than {LARGEST:,} bytes")
                return
        try:
            text = storable_escapes(bytes(body))
            from_json(text or "null", allow_inf_nan=False)
        except ValueError as error:
            await refuse(send, 422, f"the request is not JSON that can be read: {error}"[:_REASON])
            return
        sound: Message = {"type": "http.request", "body": text.encode(), "more_body": False}
        waiting = iter((sound,))

        async def replay() -> Message:
            return next(waiting, None) or await receive()

        await self._app(scope, replay, send)


async def refuse(send: Send, status: int, words: str, *headers: tuple[bytes, bytes]) -> None:
    """Refuse a request that need not have come to its end: send an error.

    The server drops the rest for as long as it waits for a head: a caller who sends all before
    reading would see of a connection that is closed at once only that it is reset.

    Args:
        send: ASGI's callable for the reply.
        status: the HTTP status.
        words: the error's message.
        headers: headers beside the usual ones, as names and values.
    """
    body = json.dumps({"error": words}).encode()
    kind, size = (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))
    start = {"type": "http.response.start", "status": status, "headers": [kind, size, *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": body})


def serve(app: ASGIApp, host: str, port: int) -> None:
    """Serve an application over HTTP until the process is stopped."""
    uvicorn.run(app, host=host, port=port, log_level="warning", http=HeadLimit, ws="none")


class HeadLimit(H11Protocol):
    """A connection that is closed if the head of a request has not come after ten seconds.

    Where a quarter of all files that the process may open are connections that wait for a head,
    the one that has waited longest is closed for each new one: nobody keeps others out by silence.
    """

    patience = PATIENCE
    most_waiting = max(16, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
    _timer: asyncio.TimerHandle | None = None
    _waiting: ClassVar[dict[HeadLimit, None]] = {}  # the longest first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # asyncio gives servers no other
        """Begin to wait for a head; uvicorn narrows the type of the transport in the same way."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on; a head that is whole is not waited for any more."""
        super().data_received(data)
        if self._is_answering:
            self._stop()

    def on_response_complete(self) -> None:
        """Wait for the next head on the same connection."""
        super().on_response_complete()
        if not self._is_answering:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        cycle: Any = self.cycle  # None before the first request, which uvicorn's type does not say
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        self._stop()
        self._timer = self.loop.call_later(self.patience, self.transport.close)
        self._waiting[self] = None
        if len(self._waiting) > self.most_waiting:
            longest = next(iter(self._waiting))
            longest._stop()
            longest.transport.abort()

    def _stop(self) -> None:
        self._waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

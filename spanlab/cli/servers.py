"""Middleware of every server: health checks, and a log with a line for each request.

Logs as JSON are one object a line: ``time`` (ISO 8601, UTC), ``level``, ``logger``, ``message``, of
what belongs to a request ``request_id``, and of a request itself ``method``, ``path``, ``status``
and ``seconds``. Addresses' queries are left out: they name datasets and people.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final

from spanlab.base.errors import SpanlabError
from spanlab.base.redaction import redact
from spanlab.storage.datasets import open_store

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS: Final = 10.0  # for the database to answer
_KEPT: Final = 1.0  # seconds that an answer of the database counts: callers need no key
_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")  # that a proxy may have given a request
_request: ContextVar[str | None] = ContextVar("request", default=None)
_OF_REQUEST: Final = ("method", "path", "status", "seconds")

log = logging.getLogger(__name__)


class HealthPaths:
    """Answers ``/healthz`` (the process runs) and ``/readyz`` (and the database answers).

    Args:
        app: the ASGI application that answers all other paths.
        ping: raises if the database does not answer; None pings that of the environment.
    """

    def __init__(self, app: ASGIApp, ping: Callable[[], object] | None = None) -> None:
        opened = cache(open_store)  # brought up to date once
        self._app, self._ping = app, ping or (lambda: opened().ping())
        self._until, self._problem = 0.0, ""
        self._asking = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a health check; pass any other request on."""
        path = scope.get("path") if scope["type"] == "http" else None
        if path == "/healthz":
            await _answer(send, 200, "ok")
        elif path == "/readyz":
            problem = await self._ask_database()
            await _answer(send, 503 if problem else 200, problem or "ok")
        else:
            await self._app(scope, receive, send)

    async def _ask_database(self) -> str:
        async with self._asking:
            if time.monotonic() >= self._until:
                self._problem = ""
                try:
                    await asyncio.wait_for(asyncio.to_thread(self._ping), _SECONDS)
                except (SpanlabError, TimeoutError) as error:
                    log.warning("not ready: %s", error)
                    self._problem = "the database does not answer: the log says more"
                self._until = time.monotonic() + _KEPT
            return self._problem


async def _answer(send: Send, status: int, words: str) -> None:
    head = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": f"{words}\n".encode()})


class RequestLog:
    """Gives every request an id, which comes back as ``X-Request-ID``, and logs its end.

    An id that a proxy has given is kept.

    Args:
        app: the ASGI application that answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request or a web socket on, with its id, and log its end."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        header = dict(scope["headers"]).get(b"x-request-id", b"")
        name = header if _ID.fullmatch(header) else secrets.token_hex(8).encode()
        token, began, status = _request.set(name.decode()), time.monotonic(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] in {"http.response.start", "websocket.accept"}:
                status = message.get("status", 101)
                headers = message.get("headers", ())
                message = {**message, "headers": [*headers, (b"x-request-id", name)]}
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            method, path = scope.get("method", "WEBSOCKET"), scope["path"]
            seconds = round(time.monotonic() - began, 4)
            extra = dict(zip(_OF_REQUEST, (method, path, status, seconds), strict=True))
            log.info("%s %s %s", method, path, status, extra=extra)
            _request.reset(token)


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON without keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if (request := _request.get()) is not None:
            fields["request_id"] = request
        fields |= {name: vars(record)[name] for name in _OF_REQUEST if name in vars(record)}
        trace = record.exc_text or (
            self.formatException(record.exc_info) if record.exc_info else ""
        )
        if trace:
            fields["error"] = redact(trace)
        return json.dumps(fields, ensure_ascii=False)


def log_json() -> None:
    """Write all logs of this process to standard error as JSON, those of requests included."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("spanlab").setLevel(logging.INFO)
    take_over_logs()


_WRITERS = {"streamlit", "uvicorn", "dbos"}  # libraries that write their logs themselves


class _TakenOver(logging.Logger):
    """A logger that is made later, which such a library gives a handler of its own."""

    def callHandlers(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Hand a record to the handlers of all logs, from warnings on."""
        if self.name.partition(".")[0] not in _WRITERS:
            super().callHandlers(record)
        elif record.levelno >= logging.WARNING:
            logging.root.callHandlers(record)


def take_over_logs() -> None:
    """Have libraries that write their logs themselves leave it to ``log_json``."""
    logging.setLoggerClass(_TakenOver)
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in _WRITERS:
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate = True
            logger.setLevel(logging.WARNING)
    threading.excepthook = _log_thread


def _log_thread(ended: threading.ExceptHookArgs) -> None:
    """Log what has ended a thread, which Python would print."""
    name = ended.thread.name if ended.thread else "a thread"
    error = ended.exc_value or ended.exc_type()
    if not isinstance(error, SystemExit):
        log.error("%s has ended by an error", name, exc_info=error)

"""The app as a web server: the options it runs with, and the requests it answers at all."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit import config

from spanlab.app.login import ReturnAfterLogin, login_routes
from spanlab.app.visitor import GUARDED, FileGuard, report_routes, routes
from spanlab.base.redaction import bound_logs
from spanlab.base.settings import Settings
from spanlab.cli.servers import HealthPaths, RequestLog, log_json, take_over_logs
from spanlab.people.logins import (
    has_login,
    has_provider,
    holds_api_key,
    login_secrets,
    owners_link,
)
from spanlab.storage.copies import sweep_copies
from spanlab.storage.datasets import open_store
from spanlab.ui.dots import DARK, LIGHT
from spanlab.ui.server_files import LOOPBACK, allowed_hosts

log = logging.getLogger("spanlab.server")

_OPTIONS: Mapping[str, object] = {
    "server.headless": True,
    "server.fileWatcherType": "none",
    "server.maxUploadSize": 2000,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.allowedOrigins": [],  # no page of another site may frame the app and steer it
    "logger.level": "warning",
    "logger.enableRich": False,  # colours and frames around a traceback, past the logs
    "logger.hideWelcomeMessage": True,  # it looks up the machine's address on the internet
    "runner.postScriptGC": False,  # a collection after every key would hold up the next
    # Else a run begins while the one before it still ends, which takes away what was pressed.
    "runner.fastReruns": False,
    "theme.light.primaryColor": LIGHT[0],
    "theme.dark.primaryColor": DARK[0],
    "theme.light.chartCategoricalColors": list(LIGHT),
    "theme.dark.chartCategoricalColors": list(DARK),
}
_METRICS = "/_stcore/metrics"
# Of every reply that does not say otherwise: no other site frames the app, or is told its
# addresses, which hold names of datasets and items; and no upload is taken for a script.
_SAFE = {
    "Content-Security-Policy": "frame-ancestors 'self'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_REPLACED = {b"host", b"origin", GUARDED.lower().encode()}


class RequestGuard:
    """Refuses requests to hosts and from pages that are not the app's own.

    A page of another site may have its name point to this machine (DNS rebinding): its requests
    carry that name as Host. Streamlit's ``server.allowedHosts`` looks at web sockets alone, and
    before it judges an Origin it asks another host for this machine's external address.

    Args:
        app: what answers the others.
        hosts: names without ports, in small letters.
        has_login: whether Streamlit is to see Origin, which it wants with its login's cookies.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], *, has_login: bool = False) -> None:
        self._app = app
        self._hosts = hosts
        self._has_login = has_login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or a web socket, or say why not."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        refusal: ASGIApp | None = None
        if _name(f"//{host}") not in self._hosts:
            reason = f"spanlab does not answer as {host!r}: SPANLAB_ALLOWED_HOSTS adds names\n"
            refusal = PlainTextResponse(reason, 421)
        elif origin is not None and not self._is_own(origin, host):
            refusal = PlainTextResponse(f"spanlab does not answer pages of {origin!r}\n", 403)
        elif scope["path"].endswith(_METRICS) and not holds_api_key(headers.get("authorization")):
            refusal = PlainTextResponse("metrics need the key of SPANLAB_API_KEY\n", 401)
        if refusal is not None:
            answer = WebSocketClose(1008) if scope["type"] == "websocket" else refusal
            return await answer(scope, receive, send)
        forwarded = [(name, value) for name, value in scope["headers"] if name not in _REPLACED]
        forwarded.append((b"host", host.encode()))
        if self._has_login and origin is not None:
            # Host as Origin has it: else Streamlit would ask for the machine's external address.
            forwarded[-1] = (b"host", urlsplit(origin).netloc.encode())
            forwarded += [(b"origin", origin.encode()), (GUARDED.lower().encode(), b"yes")]
        return await self._app({**scope, "headers": forwarded}, receive, send)

    def _is_own(self, origin: str, host: str) -> bool:
        # Other servers of this machine have pages, too; behind a proxy the Host may be another.
        return urlsplit(origin).netloc == host or _name(origin) in self._hosts - LOOPBACK


class SafeHeaders:
    """Gives every reply, refusals and health checks included, the headers of ``_SAFE``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SAFE.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safely)


def _name(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""


def guards() -> list[Middleware]:
    """Return the middleware in front of Streamlit, however the app is started; bound its logs."""
    bound_logs()
    guard = Middleware(RequestGuard, hosts=allowed_hosts(), has_login=has_login())
    opened = cache(open_store)
    returning = ReturnAfterLogin(opened)
    back = [Middleware(BaseHTTPMiddleware, dispatch=returning)] if has_provider() else []
    files = Middleware(FileGuard, open_store=opened)
    first = [Middleware(RequestLog), Middleware(SafeHeaders), Middleware(HealthPaths)]
    return [*first, guard, files, *back]


def login_options() -> dict[str, Any]:
    """Return the options of a server beside its guards: its own routes, and those of a login."""
    opened = cache(open_store)
    shared = report_routes(opened)
    if not has_login():
        return {"routes": shared}
    invited, secrets = [*shared, *routes(opened)], login_secrets()
    return (
        {"routes": [*invited, *login_routes()], "secrets": secrets}
        if secrets
        else {"routes": invited}
    )


def apply_options() -> None:
    """Take the options of ``serve`` in a server that ``streamlit run`` has begun to start.

    Exits, naming the command to use, if the server would listen for other machines that nobody
    has allowed.
    """
    address = config.get_option("server.address")
    if address not in LOOPBACK and (address is None or allowed_hosts() == LOOPBACK):
        sys.exit(
            f"spanlab: the app would listen on {address or 'every network interface'}. Start it "
            "with `spanlab serve`, or with `streamlit run app.py --server.address 127.0.0.1`; for "
            "other machines, SPANLAB_ALLOWED_HOSTS names the hosts that it answers as."
        )
    for name, value in _OPTIONS.items():
        config.set_option(name, value)


def serve(port: int | None = None, host: str = "127.0.0.1", *, as_json: bool = False) -> None:
    """Serve the app until it is stopped.

    Args:
        port: a free one; None for 8501 or the next free one.
        host: the address to listen on, this machine's own unless others are allowed.
        as_json: whether logs, with a line for each request, are JSON.
    """
    options = {**_OPTIONS, "server.address": host}
    if port is not None:
        options["server.port"] = port
    if as_json:
        log_json()
    else:
        logging.disable(logging.INFO)  # the web server tells of its start and end
    say = log.info if as_json else _write_line
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    @asynccontextmanager
    async def announce_address(_app: st.App) -> AsyncIterator[None]:
        served_port = config.get_option("server.port")
        if as_json:
            take_over_logs()
        sweep_copies(Settings.read().home)
        address = f"http://localhost:{served_port}"
        say(f"spanlab is at {address}  (Ctrl+C stops it, all work is kept)")
        if has_login() and not has_provider():
            if not Settings.read().url:
                os.environ["SPANLAB_URL"] = address
            with open_store() as store:
                for line in owners_link(store):
                    say(line)
        try:
            yield
        finally:
            if not as_json:
                logging.disable(logging.ERROR)  # a second Ctrl+C cuts the end short, in many lines

    page = Path(__file__).with_name("navigation.py")
    app = st.App(page, **login_options(), middleware=guards(), lifespan=announce_address)
    with suppress(KeyboardInterrupt):
        app.run(config=options)
    say("stopped")


def _write_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    host, port, as_json = sys.argv[1:]
    serve(int(port) if port else None, host, as_json=bool(as_json))

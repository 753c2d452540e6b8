"""A process that makes model calls for another one, and outlives it until they are answered.

What a model answers is paid for, whether or not the process that asked is still there to hear it.
So calls made in threads, which is how an optimisation makes them, are made by a small process of
their own: it does nothing but send, put what comes into the cache of answers, and pass it on. A
SIGKILL of the process that asked ends none of that; the next one finds the answers in the cache.

It is started as ``python -m spanlab.lm.keeper FD`` by ``spanlab.lm.kept``. ``FD`` is a socket over
which connections arrive, one per call at a time; keys and texts go through these alone. It ends
when that socket is closed and nothing is under way any more.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from spanlab.errors import StoreError
from spanlab.lm.cache import cache_in
from spanlab.lm.frames import pack, receive_here

_IDLE_SECONDS = 60.0  # that a connection to an endpoint is kept for the next call


class _Keeper:
    def __init__(self) -> None:
        self._clients: dict[str | None, httpx.AsyncClient] = {}  # by proxy

    async def serve(self, control: socket.socket) -> None:
        """Take connections until there can be no more, then end what is under way."""
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        callers: set[asyncio.Task[None]] = set()

        def take() -> None:
            arrived, handles, _, _ = socket.recv_fds(control, 1, 1)
            if not arrived:
                loop.remove_reader(control)
                over.set()
            for handle in handles:
                caller = loop.create_task(self._serve(socket.socket(fileno=handle)))
                callers.add(caller)
                caller.add_done_callback(callers.discard)

        loop.add_reader(control, take)
        await over.wait()
        await asyncio.gather(*callers)

    async def _serve(self, caller: socket.socket) -> None:
        caller.setblocking(False)
        # Whoever asked may be gone at any moment: what it is told then, nobody hears.
        with caller, suppress(EOFError, ConnectionError):
            while True:
                answer = await self._answer(*await receive_here(caller))
                await asyncio.get_running_loop().sock_sendall(caller, answer)

    async def _answer(self, call: dict[str, Any], body: bytes) -> bytes:
        try:
            response = await self._make(call, body)
        except httpx.TimeoutException:
            return pack({"error": "timed out"}, b"")
        except Exception as error:  # noqa: BLE001 - whatever it is, who asked waits to hear it
            return pack({"error": str(error) or type(error).__name__}, b"")
        head = {
            "status": response.status_code,
            "reason": response.reason_phrase,
            "headers": response.headers.multi_items(),
            "kept": await self._keep(call, response),
        }
        return pack(head, response.content)

    async def _make(self, call: dict[str, Any], body: bytes) -> httpx.Response:
        return await self._client(call["proxy"]).request(
            call["method"],
            call["url"],
            headers=[tuple(header) for header in call["headers"]],
            content=body,
            timeout=httpx.Timeout(pool=None, **call["seconds"]),
        )

    async def _keep(self, call: dict[str, Any], response: httpx.Response) -> bool:
        """Put an answer into the cache; return whether it is there."""
        try:
            answer = response.json() if response.is_success else None
            if not isinstance(answer, dict) or "choices" not in answer:
                return False
            await asyncio.wrap_future(cache_in(Path(call["folder"])).put(call["slot"], answer))
        except (ValueError, StoreError):
            return False  # who asked will say what is wrong with either
        return True

    def _client(self, proxy: str | None) -> httpx.AsyncClient:
        if proxy not in self._clients:
            self._clients[proxy] = httpx.AsyncClient(
                proxy=proxy,
                trust_env=False,
                verify=self._trusted,
                limits=httpx.Limits(keepalive_expiry=_IDLE_SECONDS),
            )
        return self._clients[proxy]

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context()


def main() -> None:
    """Serve the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as control:
        asyncio.run(_Keeper().serve(control))


if __name__ == "__main__":
    main()

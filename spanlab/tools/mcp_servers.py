"""Tools of MCP servers: listed and called over the protocol's own SDK, each call with its limit."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from pydantic import JsonValue

from spanlab import background
from spanlab.errors import ToolError, missing_package
from spanlab.fields import storable
from spanlab.lm.secrets import redact, remember
from spanlab.schema import Passage
from spanlab.tools.base import LONGEST, Tool
from spanlab.tools.config import ToolServer

if TYPE_CHECKING:
    from mcp import Client

_FIRST: Final = asyncio.FIRST_COMPLETED
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_ABOUT: Final = 500  # characters of a description in the prompt
_MOST: Final = 100  # tools of a server
_PATIENCE: Final = 5.0  # seconds that a server has to end


class Connection:
    """One server, connected to when it is first needed and again after it failed.

    Its protocol runs in the background event loop, whoever calls; what hangs is cut off, and a
    server that was started is ended with it.

    Args:
        name: the server's name in the configuration.
        server: how it is reached.
    """

    def __init__(self, name: str, server: ToolServer) -> None:
        self._name, self._server = name, server
        self._waiting: asyncio.Queue[tuple[str, dict[str, Any], asyncio.Future[Any]]] | None = None
        self._running: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        for variable in server.env:
            remember(os.environ.get(variable, ""))

    async def ask(self, method: str, **arguments: Any) -> Any:
        """Call a method of the SDK's client; ``arguments`` are its own.

        Raises:
            ToolError: the server is away, does not speak the protocol, or refuses.
            TimeoutError: it gave no answer in time.
        """
        try:
            return await asyncio.wrap_future(background.submit(self._ask(method, arguments)))
        except (ToolError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - the SDK raises of all kinds, in groups, too
            words = redact(str(_first(error)))[:300]
            raise ToolError(f"the tool server {self._name!r}: {words or 'it failed'}") from None

    async def _ask(self, method: str, arguments: dict[str, Any]) -> Any:
        if self._running is None or self._running.done():
            self._waiting, self._ready = asyncio.Queue(), asyncio.Event()
            self._running = asyncio.create_task(self._serve(self._waiting, self._ready))
        assert self._waiting is not None
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        running = self._running
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait([ready, running], timeout=self._server.start, return_when=_FIRST)
        ready.cancel()
        if self._ready.is_set():
            self._waiting.put_nowait((method, arguments, answer))
            await asyncio.wait([answer, running], timeout=self._server.seconds, return_when=_FIRST)
        if answer.done() and answer.exception() is None:
            return answer.result()
        # What the tool itself says comes as a result: this is the connection, so it is begun anew.
        ended = running.done()
        running.cancel()
        with suppress(Exception, asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(running), _PATIENCE)
        if ended and not running.cancelled() and (error := running.exception()) is not None:
            raise error
        if answer.done():
            return answer.result()
        raise TimeoutError(
            f"the tool server {self._name!r} gave no answer within {self._server.seconds:g} s"
        )

    async def _serve(self, waiting: asyncio.Queue[Any], ready: asyncio.Event) -> None:
        """Hold the connection in one task, as the SDK wants it, and start every call in it."""
        async with _client(self._server) as client, asyncio.TaskGroup() as calls:
            ready.set()
            while True:
                method, arguments, answer = await waiting.get()
                calls.create_task(_answer(client, method, arguments, answer))


async def _answer(
    client: Client, method: str, arguments: dict[str, Any], answer: asyncio.Future[Any]
) -> None:
    try:
        found = await getattr(client, method)(**arguments)
    except Exception as error:  # noqa: BLE001 - it is for the one who asks
        if not answer.done():
            answer.set_exception(error)
    else:
        if not answer.done():
            answer.set_result(found)


def _client(server: ToolServer) -> Client:
    try:
        from mcp import Client, StdioServerParameters, stdio_client
    except ModuleNotFoundError as error:
        raise missing_package("a tool server", error.name, "mcp") from None
    if server.url is not None:
        return Client(server.url)
    given = {name: os.environ[name] for name in server.env if name in os.environ}
    guarded = ["-m", "spanlab.tools.guard", *server.command]
    process = StdioServerParameters(command=sys.executable, args=guarded, env=given)
    # What it logs may hold keys, and nobody of ours reads it.
    return Client(stdio_client(process, errlog=_nowhere()))


async def server_tools(servers: Mapping[str, ToolServer]) -> list[Tool]:
    """Return the tools of some servers that may be called; each is named ``server.tool``.

    Raises:
        ToolError: a server cannot be reached.
        TimeoutError: one gave no answer in time.
        UsageError: the SDK is not installed.
    """
    lists = await asyncio.gather(*(_listed(name, each) for name, each in servers.items()))
    return [tool for tools in lists for tool in tools]


async def _listed(name: str, server: ToolServer) -> list[Tool]:
    connection = _connection(name, server)
    found = await connection.ask("list_tools")
    tools = []
    for each in found.tools[:_MOST]:
        allowed = server.tools is None or each.name in server.tools
        if allowed and _NAME.fullmatch(each.name):
            tools.append(_tool(name, server, connection, each))
    return tools


def _tool(name: str, server: ToolServer, connection: Connection, told: Any) -> Tool:
    schema = told.input_schema if isinstance(told.input_schema, dict) else {}
    parameters = schema.get("properties") or {}
    title = f"{name}.{told.name}"

    async def run(arguments: Mapping[str, JsonValue]) -> Sequence[Passage]:
        given = {"name": told.name, "arguments": dict(arguments)}
        result = await connection.ask("call_tool", **given)
        texts = [
            redact(storable(part.text[:LONGEST]))
            for part in result.content
            if getattr(part, "type", "") == "text" and part.text.strip()
        ]
        if result.is_error:
            raise ToolError(f"{title}: {' '.join(texts)[:300] or 'it failed'}")
        return [Passage(text=text, title=title) for text in texts]

    return Tool(
        title,
        storable(redact(told.description or ""))[:_ABOUT],
        parameters if isinstance(parameters, dict) else {},
        run,
        tuple(str(each) for each in schema.get("required") or ()),
        source=f"tool:{title}",
        kind=server.kind,
        seconds=server.start + server.seconds + _PATIENCE,
    )


@cache
def _connection(name: str, server: ToolServer) -> Connection:
    """Keep one connection to each server in this process."""
    return Connection(name, server)


@cache
def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

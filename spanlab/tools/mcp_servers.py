"""Tools of MCP servers: listed and called over the protocol's own SDK, each call with its limit."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from pydantic import JsonValue, ValidationError

from spanlab.base import runtime
from spanlab.base.errors import ToolError, UsageError, missing_package
from spanlab.base.fields import storable
from spanlab.base.inbound import bounding, is_end, one_line, reason_of, reply_limit
from spanlab.base.redaction import bound_logs, redact, remember
from spanlab.schema import Passage
from spanlab.tools import guard
from spanlab.tools.toolbox import OfItem, Tool, ToolServer

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.session import IncomingMessage, MessageHandlerFnT

_FIRST: Final = asyncio.FIRST_COMPLETED
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_ABOUT: Final = 500  # characters of a description in the prompt
_VALUES: Final = 100_000  # lists and objects of a reply, of each of which the SDK makes a model
_READ: Final = 1_000_000  # characters of a part that are looked at
_PARAMETERS: Final = 30  # of a tool
_MOST: Final = 100  # tools of a server
_PATIENCE: Final = 5.0  # seconds that a server has to end
_OURS: Final = "from spanlab.cli import main; main()"
_OF_ITEM: Final[tuple[OfItem, ...]] = ("language", "before")  # arguments of our own servers


class ServerConnection:
    """One server, connected to when it is first needed and again after it failed.

    Its protocol runs in the background event loop, whoever calls. A call that hangs is cut off; the
    next one has a new connection, and the old one ends with the last call that is under way in it,
    as does a server that was started.

    Args:
        name: the server's name in the configuration.
        server: how it is reached.
    """

    def __init__(self, name: str, server: ToolServer) -> None:
        self._name, self._server = name, server
        self._session: _HeldSession | None = None
        for variable in filter(None, (*server.env, server.key)):
            remember(os.environ.get(variable, ""))

    async def ask(self, method: str, **arguments: Any) -> Any:
        """Call a method of the SDK's client; ``arguments`` are its own.

        Raises:
            ToolError: the server is away, does not speak the protocol, or refuses.
            TimeoutError: it gave no answer in time.
            UsageError: the SDK is not installed.
        """
        try:
            return await asyncio.wrap_future(runtime.submit(self._ask(method, arguments)))
        except TimeoutError as error:
            raise TimeoutError(f"the tool server {self._name!r} {error}") from None
        except UsageError:
            raise
        except BaseException as error:
            if is_end(error):
                raise
            raise ToolError(f"the tool server {self._name!r}: {reason_of(error)}") from None

    async def _ask(self, method: str, arguments: dict[str, Any]) -> Any:
        if self._session is None:
            self._session = _HeldSession(self._server)
        session = self._session
        session.users += 1
        try:
            return await session.call(method, arguments)
        except Exception:
            # What a tool itself says comes as a result: it is the connection that failed.
            if self._session is session:
                self._session = None
            raise
        finally:
            session.users -= 1
            if not session.users and self._session is not session:
                await session.end()


class _HeldSession:
    """A connection, held in one task, as the SDK wants it."""

    def __init__(self, server: ToolServer) -> None:
        self.users = 0
        self._server = server
        loop = asyncio.get_running_loop()
        self._client: asyncio.Future[Client] = loop.create_future()
        self._unreadable: asyncio.Future[None] = loop.create_future()
        self._serving = asyncio.create_task(self._serve())
        self._serving.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def call(self, method: str, arguments: dict[str, Any]) -> Any:
        client = await self._soon(self._client, self._server.start)
        call = asyncio.create_task(getattr(client, method)(**arguments))
        try:
            return await self._soon(call, self._server.seconds)
        finally:
            call.cancel()  # which the server is told

    async def end(self) -> None:
        self._serving.cancel()
        await asyncio.wait([self._serving], timeout=_PATIENCE)

    async def _soon(self, wanted: asyncio.Future[Any], seconds: float) -> Any:
        """Wait for something that comes before the connection ends."""
        ends = [wanted, self._serving, self._unreadable]
        await asyncio.wait(ends, timeout=seconds, return_when=_FIRST)
        if wanted.done():
            return wanted.result()
        if self._unreadable.done():  # whoever waits for that reply would do so until the end
            raise ToolError("its reply is not JSON in UTF-8, has half an emoji or is too large")
        if self._serving.done():
            return self._serving.result()  # it raises what has ended it
        raise TimeoutError(f"gave no answer within {seconds:g} s")

    async def _serve(self) -> None:
        async with _client(self._server, self._hear) as client:
            self._client.set_result(client)
            await asyncio.Event().wait()

    async def _hear(self, message: IncomingMessage) -> None:
        if not isinstance(message, ValidationError) or self._unreadable.done():
            return
        # Any other line is something that the server logs to its standard output.
        if "jsonrpc" in str(message.errors()[0]["input"]):
            self._unreadable.set_result(None)


def _client(server: ToolServer, hear: MessageHandlerFnT) -> Client:
    try:
        from mcp import Client, StdioServerParameters, stdio_client
    except ModuleNotFoundError as error:
        raise missing_package("a tool server", error.name, "mcp") from None
    bound_logs()
    if server.url is not None:
        return Client(_over_http(server.url, os.environ.get(server.key or "", "")))
    given = {name: os.environ[name] for name in server.env if name in os.environ}
    command = server.command
    if server.source is not None:
        given = dict(os.environ)
        command = (sys.executable, "-c", _OURS, "mcp", "--source", server.source)
        command += ("--corpus", str(server.corpus)) if server.corpus else ()
    limits = (str(os.getpid()), str(reply_limit()), str(_VALUES))
    process = StdioServerParameters(
        command=sys.executable,
        args=["-I", guard.__file__, *limits, *command],
        env=given,
        encoding_error_handler="replace",  # "strict" has the SDK wait on after a byte of no UTF-8
    )
    # What it logs may hold keys, and nobody of ours reads it.
    return Client(stdio_client(process, errlog=_nowhere()), message_handler=hear)


@asynccontextmanager
async def _over_http(url: str, key: str) -> AsyncGenerator[Any, None]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": f"Bearer {key}"} if key else None
    async with create_mcp_http_client(headers) as http:
        http.event_hooks["response"].append(bounding(httpx2, reply_limit(), _VALUES))
        async with streamable_http_client(url, http_client=http) as streams:
            yield streams


@dataclass(frozen=True)
class ServerState:
    """A server with the tools that may be called; ``problem`` says why it gave none."""

    name: str
    tools: tuple[Tool, ...] = ()
    problem: str | None = None


async def server_states(servers: Mapping[str, ToolServer]) -> list[ServerState]:
    """Ask servers for their tools, each of which is named ``server.tool``.

    Raises:
        UsageError: the SDK is not installed.
    """
    return list(await asyncio.gather(*(_state(name, server) for name, server in servers.items())))


async def _state(name: str, server: ToolServer) -> ServerState:
    connection = _connection(name, server)
    try:
        reply = await connection.ask("list_tools")
    except (ToolError, TimeoutError) as error:
        return ServerState(name, problem=str(error))
    tools = [
        _tool(name, server, connection, tool)
        for tool in reply.tools[:_MOST]
        if (server.tools is None or tool.name in server.tools) and _NAME.fullmatch(tool.name)
    ]
    return ServerState(name, tuple(tools))


def _tool(name: str, server: ToolServer, connection: ServerConnection, told: Any) -> Tool:
    schema = told.input_schema if isinstance(told.input_schema, dict) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    named = {name: schema for name, schema in properties.items() if _NAME.fullmatch(name)}
    parameters = dict(islice(named.items(), _PARAMETERS))
    required = schema.get("required")
    title = f"{name}.{told.name}"

    async def run(arguments: Mapping[str, JsonValue]) -> Sequence[Passage]:
        given = {"name": told.name, "arguments": dict(arguments)}
        result = await connection.ask("call_tool", **given)
        texts = [
            redact(storable(part.text[:_READ]))
            for part in result.content
            if getattr(part, "type", "") == "text" and part.text.strip()
        ]
        if result.is_error:
            raise ToolError(f"{title}: {' '.join(texts)[:300] or 'it failed'}")
        return [_passage(text, title) for text in texts]

    return Tool(
        title,
        one_line(redact(told.description or ""), _ABOUT),
        parameters,
        run,
        tuple(name for name in parameters if isinstance(required, list) and name in required),
        source=f"tool:{title}",
        kind=server.source or server.kind,
        seconds=server.start + server.seconds + _PATIENCE,
        longest=server.longest,
        of_item=_OF_ITEM if server.source else (),
        limited=True,
    )


def _passage(text: str, title: str) -> Passage:
    """Read a passage in the form of our JSON Lines; any other text is one itself."""
    with suppress(ValidationError):
        passage = Passage.model_validate_json(text)
        return passage.model_copy(update={"title": passage.title or title})
    return Passage(text=text, title=title)


@cache
def _connection(name: str, server: ToolServer) -> ServerConnection:
    """Keep one connection to each server in this process."""
    return ServerConnection(name, server)


@cache
def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")

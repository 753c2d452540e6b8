"""The tool servers that are configured, and whether they answer."""

from __future__ import annotations

from dataclasses import dataclass

from spanlab.background import wait
from spanlab.errors import ToolError
from spanlab.settings import Settings
from spanlab.tools import Tool
from spanlab.tools.config import tool_servers
from spanlab.tools.mcp_servers import server_tools


@dataclass(frozen=True)
class ServerState:
    """A server with the tools that may be called; ``problem`` says why it gave none."""

    name: str
    tools: tuple[Tool, ...] = ()
    problem: str | None = None


def server_states(settings: Settings) -> list[ServerState]:
    """Ask every configured server for its tools; blocks until all have answered or failed.

    Raises:
        InputError: the file of servers is wrong.
        UsageError: the SDK is not installed.
    """
    states = []
    for name, server in tool_servers(settings).items():
        try:
            tools = wait(server_tools({name: server}))
        except (ToolError, TimeoutError) as error:
            states.append(ServerState(name, problem=str(error)))
        else:
            states.append(ServerState(name, tuple(tools)))
    return states

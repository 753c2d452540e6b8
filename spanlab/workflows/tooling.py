"""The tool servers that are configured, and whether they answer."""

from __future__ import annotations

from collections.abc import Iterable

from spanlab.runtime import wait
from spanlab.settings import Settings
from spanlab.tools.mcp_servers import ServerState, server_states
from spanlab.tools.toolbox import chosen_servers, tool_servers

__all__ = ["ServerState", "server_names", "states_of"]


def server_names() -> list[str]:
    """Return the names of the servers that a detector may ask, ours first.

    Raises:
        InputError: the file of servers is wrong.
    """
    return list(tool_servers(Settings.read()))


def states_of(names: Iterable[str] = ()) -> list[ServerState]:
    """Ask servers for their tools, all if none is named; blocks until all have answered or failed.

    Raises:
        InputError: the file of servers is wrong.
        UsageError: no server is called so, or the SDK is not installed.
    """
    settings = Settings.read()
    servers = chosen_servers(settings, ",".join(names)) or tool_servers(settings)
    return wait(server_states(servers))

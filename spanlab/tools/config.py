"""Which MCP servers a detector may ask: a file that names commands and addresses, and no keys.

    {"servers": {"wiki": {"command": ["my-wiki-server"], "tools": ["search"], "env": ["WIKI_KEY"]},
                 "notes": {"url": "http://127.0.0.1:9000/mcp", "seconds": 5}}}

It lies in ``<home>/tools.json``, or where ``SPANLAB_TOOLS`` says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, ValidationError, model_validator

from spanlab.errors import InputError, UsageError
from spanlab.fields import Frozen
from spanlab.settings import Settings
from spanlab.tools.base import SECONDS

FILE: Final = "SPANLAB_TOOLS"
_LARGEST: Final = 1_000_000  # bytes of the file

ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]


class ToolServer(Frozen):
    """An MCP server: a ``command`` that is started, or the ``url`` of one that runs.

    ``tools`` are those that may be called, None for all; ``env`` names the environment variables
    that a command is given beside PATH, HOME and the like; ``seconds`` is how long a call may take
    and ``start`` how long a server may take to be there; ``kind`` is the kind of source, by which
    kept evidence expires.
    """

    command: tuple[str, ...] = ()
    url: str | None = None
    tools: tuple[str, ...] | None = None
    env: tuple[str, ...] = ()
    seconds: Annotated[float, Field(gt=0, le=600)] = SECONDS
    start: Annotated[float, Field(gt=0, le=600)] = 30.0
    kind: str = "tool"

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("a server has a command or a url, and not both")
        return self


class _File(Frozen):
    servers: Mapping[ServerName, ToolServer] = Field(default_factory=dict)


def tool_servers(settings: Settings) -> Mapping[str, ToolServer]:
    """Return the configured servers by name; empty without a file.

    Raises:
        InputError: the file cannot be read, or a field of it is wrong.
    """
    file = Path(os.environ.get(FILE) or settings.home / "tools.json")
    if not file.exists() and not os.environ.get(FILE):
        return {}
    try:
        with file.open("rb") as stream:
            return _File.model_validate_json(stream.read(_LARGEST)).servers
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or None
        raise InputError(first["msg"].lower(), file=file, field=field) from None


def chosen_servers(settings: Settings, names: str) -> Mapping[str, ToolServer]:
    """Return the servers that are named, separated by commas.

    Raises:
        UsageError: one is not configured; says which are.
        InputError: the file of servers is wrong.
    """
    wanted = [name for name in map(str.strip, names.split(",")) if name]
    known = tool_servers(settings) if wanted else {}
    for name in wanted:
        if name not in known:
            there = ", ".join(known) or "none"
            raise UsageError(
                f"no tool server is called {name!r} (configured: {there}); "
                f"they stand in {settings.home / 'tools.json'} or the file that {FILE} names"
            )
    return {name: known[name] for name in wanted}

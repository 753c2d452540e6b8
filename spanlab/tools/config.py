"""Which MCP servers a detector may ask: our own, and those in a file that holds no keys.

    {"servers": {"wiki": {"command": ["my-wiki-server"], "tools": ["search"], "env": ["WIKI_KEY"]},
                 "notes": {"url": "http://127.0.0.1:9000/mcp", "seconds": 5, "key": "NOTES_KEY"},
                 "mine": {"source": "corpus", "corpus": "my-index"}}}

It lies in ``<home>/tools.json``, or where ``SPANLAB_TOOLS`` says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from spanlab.errors import UsageError
from spanlab.schema import FrozenModel
from spanlab.settings import Settings, read_json
from spanlab.tools.base import LONGEST, SECONDS

FILE: Final = "SPANLAB_TOOLS"
_LARGEST: Final = 1_000_000  # bytes of the file

ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]


Source = Literal["wikipedia", "search", "papers", "corpus"]


class ToolServer(FrozenModel):
    """An MCP server: a ``command`` that is started, the ``url`` of one that runs, or one of ours.

    ``source`` names one of ours, ``corpus`` the index that it searches if that is its source.
    ``tools`` are those that may be called, None for all; ``env`` names the environment variables
    that a command is given beside PATH, HOME and the like, and ``key`` the one whose value is sent
    to a url, as Bearer; ``seconds`` is how long a call may take, ``start`` how long a server may
    take to be there, and ``longest`` how many characters of an answer count; ``kind`` is the kind
    of source, by which kept evidence expires.
    """

    command: tuple[str, ...] = ()
    url: str | None = None
    source: Source | None = None
    corpus: Path | None = None
    tools: tuple[str, ...] | None = None
    env: tuple[str, ...] = ()
    key: str | None = None
    seconds: Annotated[float, Field(gt=0, le=600)] = SECONDS
    start: Annotated[float, Field(gt=0, le=600)] = 30.0
    longest: Annotated[int, Field(ge=1, le=LONGEST)] = LONGEST
    kind: str = "tool"

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if [bool(self.command), bool(self.url), bool(self.source)].count(True) != 1:
            raise ValueError("a server has a command, a url or a source, and one of them alone")
        if (self.source == "corpus") != (self.corpus is not None):
            raise ValueError("the source corpus, and no other, has a corpus: the path of an index")
        return self


# They need no entry in the file; an entry of the same name takes their place.
_OWN: Final[tuple[Source, ...]] = ("wikipedia", "search", "papers")


class _ToolsFile(FrozenModel):
    servers: Mapping[ServerName, ToolServer] = Field(default_factory=dict)


def tool_servers(settings: Settings) -> Mapping[str, ToolServer]:
    """Return the servers by name: ours, and those in the file.

    Raises:
        InputError: the file cannot be read, or a field of it is wrong.
    """
    file = Path(os.environ.get(FILE) or settings.home / "tools.json")
    own: dict[str, ToolServer] = {name: ToolServer(source=name) for name in _OWN}
    if not file.exists() and not os.environ.get(FILE):
        return own
    found = read_json(_ToolsFile, file, "a list of tool servers", most=_LARGEST)
    return own | dict(found.servers)


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
            raise UsageError(
                f"no tool server is called {name!r} (there are: {', '.join(known)}); "
                f"yours stand in {settings.home / 'tools.json'} or the file that {FILE} names"
            )
    return {name: known[name] for name in wanted}

"""What a tool is, where it is called, and how tools are configured.

{"servers": {"wiki": {"command": ["my-wiki-server"], "tools": ["search"], "env": ["WIKI_KEY"]},
                 "notes": {"url": "http://127.0.0.1:9000/mcp", "seconds": 5, "key": "NOTES_KEY"},
                 "mine": {"source": "corpus", "corpus": "my-index"}}}

It lies in ``<home>/tools.json``, or where ``SPANLAB_TOOLS`` says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from spanlab.base.errors import BudgetError, ToolError, UsageError
from spanlab.base.fields import FrozenModel, storable
from spanlab.base.settings import Settings, read_json
from spanlab.models.meter import Meter
from spanlab.schema import Passage
from spanlab.schema.usage import Usage

SECONDS: Final = 30.0  # for a call, unless a tool has another limit
LONGEST: Final = 100_000  # characters of all passages that a call gives
OfItem = Literal["language", "before"]  # what is known of an item that a claim comes from

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True)
class Tool:
    """A tool, as an agent sees it and as it runs.

    Attributes:
        name: what it is called by.
        description: what it does, for the prompt.
        parameters: its arguments as JSON schemas, by name.
        run: takes checked arguments and returns what was found.
        required: names of the arguments that a call must have.
        source: who is noted with an item as having found the passages, such as a retriever.
        kind: the kind of source, by which kept evidence expires.
        seconds: how long a call may take.
        longest: characters of all passages that a call gives, the first ones.
        of_item: arguments that come from the item and not from the agent, who is not told of them.
        limited: whether its calls count as searches of the run, up to the limit on these; those of
            a retriever are counted by itself.
    """

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    run: Callable[[Mapping[str, JsonValue]], Awaitable[Sequence[Passage]]]
    required: tuple[str, ...] = ()
    source: str = ""
    kind: str = "search"
    seconds: float = SECONDS
    longest: int = LONGEST
    of_item: tuple[OfItem, ...] = ()
    limited: bool = False

    @property
    def asked(self) -> Mapping[str, JsonValue]:
        """The parameters that an agent gives."""
        return {
            name: parameter
            for name, parameter in self.parameters.items()
            if name not in self.of_item
        }


class Toolbox:
    """The tools that may be called; whatever else a model names cannot be.

    Args:
        tools: the tools, each with a name of its own.
        of_item: the arguments that come from the item; tools that have no such parameter are called
            without.
        meter: counts the calls; None counts for nobody.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        of_item: Mapping[OfItem, str] = MappingProxyType({}),
        meter: Meter | None = None,
    ) -> None:
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self._of_item, self._meter = of_item, meter or Meter()

    def described(self) -> str:
        """Return the tools as a prompt shows them, one a line; empty if there are none."""
        return "\n".join(
            f"- {tool.name}({', '.join(_parameters(tool))}): {' '.join(tool.description.split())}"
            for tool in self.tools.values()
        )

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> tuple[Passage, ...]:
        """Call a tool.

        Args:
            name: the tool.
            arguments: by name; those of an only parameter may come under any name.

        Returns:
            What it found, cut to as many characters in all as the tool may give; empty if it
            found nothing.

        Raises:
            ToolError: there is no such tool, or the arguments are not what it takes.
            BudgetError: the run's searches are used up, and it was not called.
            TimeoutError: it took longer than it may.
            SpanlabError: it failed.
        """
        tool = self.checked(name, arguments)
        own = {name: self._of_item[name] for name in tool.of_item if name in self._of_item}
        given = {name: own[name] for name in own if name in tool.parameters}
        try:
            async with self._counted(tool), asyncio.timeout(tool.seconds):
                passages = await tool.run(_named(tool, arguments) | given)
        except TimeoutError:
            raise TimeoutError(f"{name} gave no answer within {tool.seconds:g} s") from None
        return _bounded(passages, tool.longest)

    @asynccontextmanager
    async def _counted(self, tool: Tool) -> AsyncIterator[None]:
        """Count a call, also one that fails; not one that the budget does not let out."""
        called, used = tool.source or tool.name, Usage(tool_calls=1)
        if tool.limited:
            await self._meter.admit("searches")
            used += Usage(searches=1)
        try:
            yield
        except BudgetError:
            used = Usage()
            raise
        finally:
            if tool.limited:
                self._meter.finish(called, used, "searches")
            else:
                self._meter.note(called, used)

    def checked(self, name: str, arguments: Mapping[str, JsonValue]) -> Tool:
        """Return the tool of a call that can be made; raises as ``call`` does."""
        tool = self.tools.get(name)
        if tool is None:
            names = ", ".join(self.tools) or "none"
            raise ToolError(f"no tool named {name[:100]!r}; available: {names}")
        _check(tool, _named(tool, arguments))
        return tool


def _named(tool: Tool, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a call's arguments; an only one may come under another name than the parameter's."""
    given = dict(arguments)
    main = tool.required if len(tool.required) == 1 else tuple(tool.asked)
    if len(given) == len(main) == 1 and not given.keys() & tool.asked.keys():
        return {main[0]: next(iter(given.values()))}
    return given


def _check(tool: Tool, given: Mapping[str, JsonValue]) -> None:
    takes = f"{tool.name} takes {', '.join(_parameters(tool)) or 'no arguments'}"
    for name in tool.required:
        if given.get(name) in (None, ""):
            raise ToolError(f"{name!r} is missing: {takes}")
    for name, value in given.items():
        if name not in tool.asked:
            raise ToolError(f"{name[:100]!r} is not an argument: {takes}")
        wanted = _type(tool, name)
        is_bool = isinstance(value, bool) and wanted != "boolean"
        if wanted in _TYPES and (is_bool or not isinstance(value, _TYPES[wanted])):
            raise ToolError(
                f"{name!r} is {str(value)[:100]!r}, which is not of the type {wanted}: {takes}"
            )


def query_text(tool: Tool, arguments: Mapping[str, JsonValue]) -> str:
    """Return what a call asks, in one line: its only argument, or all of them as JSON."""
    given = dict(arguments)
    (only, *others) = given.values() if given else ("",)
    if isinstance(only, str) and not others:
        return " ".join(only.split())
    return json.dumps(given, ensure_ascii=False, sort_keys=True)


def _type(tool: Tool, name: str) -> str:
    schema = tool.parameters[name]
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) and kind in _TYPES else ""


def _parameters(tool: Tool) -> list[str]:
    return [
        f"{name}: {_type(tool, name) or 'any'}{'' if name in tool.required else ' (optional)'}"
        for name in tool.asked
    ]


def _bounded(passages: Sequence[Passage], room: int) -> tuple[Passage, ...]:
    kept: list[Passage] = []
    for passage in passages:
        if room <= 0:
            break
        if text := storable(passage.text[:room]).strip():
            kept.append(passage.model_copy(update={"text": text}))
            room -= len(text)
    return tuple(kept)


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
    file = settings.tools or settings.home / "tools.json"
    own: dict[str, ToolServer] = {name: ToolServer(source=name) for name in _OWN}
    if not file.exists() and settings.tools is None:
        return own
    tools_file = read_json(_ToolsFile, file, "a list of tool servers", most=_LARGEST)
    return own | dict(tools_file.servers)


def chosen_servers(settings: Settings, names: str) -> Mapping[str, ToolServer]:
    """Return the servers that are named, separated by commas.

    Raises:
        UsageError: one is not configured; says which are.
        InputError: the file of servers is wrong.
    """
    wanted = [name for name in map(str.strip, names.split(",")) if name]
    servers = tool_servers(settings) if wanted else {}
    for name in wanted:
        if name not in servers:
            raise UsageError(
                f"no tool server named {name!r}; available: {', '.join(servers)}; "
                f"yours stand in {settings.home / 'tools.json'} or the file that "
                f"{settings.variable('tools')} names"
            )
    return {name: servers[name] for name in wanted}

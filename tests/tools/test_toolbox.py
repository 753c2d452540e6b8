"""How the arguments of a call become those of a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from pydantic import JsonValue

from spanlab.base.errors import ToolError
from spanlab.schema import Passage
from spanlab.tools import Tool, Toolbox


async def echo(arguments: Mapping[str, JsonValue]) -> Sequence[Passage]:
    return [Passage(text=" ".join(f"{name}={each}" for name, each in sorted(arguments.items())))]


TEXT: JsonValue = {"type": "string"}
PARAMETERS: dict[str, JsonValue] = {
    "title": TEXT,
    "k": {"type": "integer"},
    "language": TEXT,
    "before": TEXT,
}
LOOK = Tool("look", "Look.", PARAMETERS, echo, ("title",), of_item=("language", "before"))
BOX = Toolbox([LOOK, Tool("own", "Its own.", {"language": TEXT}, echo)], {"language": "de"})


@pytest.mark.parametrize(
    ("tool", "arguments", "given"),
    [
        pytest.param("look", {"title": "x"}, "language=de title=x", id="of-the-item"),
        pytest.param("look", {"input": "x"}, "language=de title=x", id="under-another-name"),
        pytest.param("look", {"title": "x", "k": 2}, "k=2 language=de title=x", id="optional"),
        pytest.param("own", {"language": "C"}, "language=C", id="another-s-own-language"),
        pytest.param("own", {}, "", id="nothing"),
        pytest.param("look", {"k": 2}, "'title' is missing", id="missing"),
        pytest.param(
            "look", {"title": "x", "before": "2020"}, "not an argument", id="not-the-agent-s"
        ),
    ],
)
def test_arguments_come_from_the_agent_and_from_the_item(
    tool: str, arguments: dict[str, JsonValue], given: str
) -> None:
    try:
        found = asyncio.run(BOX.call(tool, arguments))
    except ToolError as error:
        assert given in str(error)
    else:
        assert " ".join(passage.text for passage in found) == given


def test_an_agent_is_told_of_its_own_arguments() -> None:
    look, own = BOX.described().splitlines()
    assert look == "- look(title: string, k: integer (optional)): Look."
    assert own == "- own(language: string (optional)): Its own."

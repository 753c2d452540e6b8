"""What the memory saves: 200 claims about entities that they share, counted by hand."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from detector_cases import Make
from prompts import prompt_of

from spanlab.base.settings import Settings
from spanlab.memory.store import MemoryStore
from spanlab.models.meter import together
from spanlab.schema import Item, RecallStep, Step
from spanlab.search.spec import SearchSpec
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say_fields

# 20 towns with nine claims each, and 20 with one: a search for each town, 40, instead of 200.
TOWNS = [f"Aldmere {chr(65 + n % 26)}{chr(97 + n // 26)}ville" for n in range(40)]
CLAIMS = [TOWNS[n % 20] if n < 180 else TOWNS[n - 160] for n in range(200)]
ITEMS = [
    Item(id=f"c{n}", lang="en", answer=f"The tower of {town} has {n + 100} steps.")
    for n, town in enumerate(CLAIMS)
]


class Towns:
    """Finds a sentence about the town that is searched for."""

    def __init__(self) -> None:
        self.searched: list[str] = []

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        (query,) = parse_qs(urlsplit(ask.path).query)["q"]
        self.searched.append(query)
        town = re.findall(r"Aldmere \w+ville", query)[0]
        hit = {"title": town, "url": f"https://{len(self.searched)}.example/", "content": ""}
        return ScriptedReply(
            body={"results": [hit | {"content": f"The tower of {town} has steps. It rains."}]}
        )


def think(ask: ModelRequest) -> ScriptedReply:
    """Search for the claim unless something is known, then answer."""
    prompt = prompt_of(ask)
    claim = re.findall(r"The tower of (Aldmere \w+ville) has \d+ steps\.", prompt)[0]
    if "## decomposition ## ]]`" in prompt:
        triplet = {"subject": claim, "relation": "has", "object": "steps", "attributes": []}
        return say_fields(decomposition={"triplets": [triplet], "topics": []})
    known = prompt.split("[[ ## known ## ]]")[1].split("[[ ## ")[0].strip()
    if known == "nothing" and "no steps yet" in prompt:
        query = re.findall(r"The tower of \S+ \S+ has \d+ steps\.", prompt)[0]
        call = {"tool": "search", "arguments": {"query": query}}
        return say_fields(step={"thought": "look", "action": call})
    return say_fields(step={"thought": "so", "answer": "supported"})


@pytest.fixture
def towns() -> Iterator[tuple[ModelServer, Towns]]:
    script = Towns()
    with ModelServer(script) as server:
        yield server, script


@pytest.mark.parametrize(
    ("at_once", "items", "options", "searches"),
    [
        pytest.param(1, ITEMS, {}, 40, id="one-after-the-other"),
        pytest.param(32, ITEMS, {}, 40, id="32-at-once"),
        pytest.param(8, ITEMS[:25], {"memory": "off"}, 25, id="off"),
    ],
)
def test_the_searches_that_memory_saves(
    at_once: int,
    items: list[Item],
    options: dict[str, object],
    searches: int,
    *,
    model_server: ModelServer,
    make: Make,
    towns: tuple[ModelServer, Towns],
    settings: Settings,
) -> None:
    server, script = towns
    model_server.script(think)
    spec = SearchSpec(url=f"{server.url}/search?q={{query}}")
    detector = make("mermaid", retriever=spec, options={"claims": "answer", **options})
    steps: list[Step] = []

    async def run() -> None:
        work = (detector.detect(item) for item in items)
        for found in await together(*work, at_once=at_once):
            assert [claim.verdict for claim in found.annotation.claims] == ["supported"]
            steps.extend(found.annotation.trace)

    asyncio.run(run())
    assert len(script.searched) == searches
    recalls = [step for step in steps if isinstance(step, RecallStep)]
    assert len(recalls) == len(items) - searches
    assert all(step.notes[0].startswith("from memory: found on 20") for step in recalls)
    with MemoryStore.open(settings) as store:
        assert sum(store.scopes().values()) == (0 if options else searches)

"""`spanlab mcp` as the SDK's own client sees it, over a real process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client

from spanlab.testing import ModelServer

ANSWER = "The tower was built in 1989 by Ada Smith in Paris."
PASSAGE = "The tower was built in 1889 by Gustave Eiffel in Paris."


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what comes by itself, however slow the machine is."""
    async with asyncio.timeout(300):
        while not holds():
            await asyncio.sleep(0.05)


def test_an_assistant_finds_hallucinations_scores_them_and_stops_a_call(
    tmp_path: Path, model_server: ModelServer
) -> None:
    command = Path(sys.executable).with_name("spanlab")
    model_server.latency = 3600.0
    environment = {
        "SPANLAB_HOME": str(tmp_path),
        "OPENAI_BASE_URL": model_server.url,
        "OPENAI_API_KEY": "any",
        "SPANLAB_MODEL": "scripted",
    }
    detectors = ["--detector", "offline", "--detector", "ucsc-extract"]
    server = StdioServerParameters(command=str(command), args=["mcp", *detectors], env=environment)
    noted: list[float] = []

    async def note(progress: float, total: float | None = None, message: str | None = None) -> None:
        noted.append(progress)

    async def run() -> None:
        with Path(os.devnull).open("w") as nowhere:
            async with Client(stdio_client(server, errlog=nowhere)) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert names == ["find_hallucinations", "verify_claim", "score_spans"]
                asked = {"answer": ANSWER, "question": "Who built it?", "passages": [PASSAGE]}
                found = await client.call_tool("find_hallucinations", asked, progress_callback=note)
                assert not found.is_error
                said = found.structured_content
                assert said is not None
                spans = said["spans"]
                assert any("1989" in span["text"] for span in spans)
                assert spans[0]["evidence"][0]["passage"] == 0
                given = [{"start": span["start"], "end": span["end"]} for span in spans]
                score = await client.call_tool(
                    "score_spans", {"answer": ANSWER, "spans": given, "gold": given}
                )
                assert score.structured_content == {"iou": 1.0, "corr": 1.0, "f1": 1.0}
                wrong = await client.call_tool(
                    "find_hallucinations", {"answer": ANSWER, "detector": "papelo"}
                )
                assert wrong.is_error
                slow = asyncio.create_task(
                    client.call_tool("find_hallucinations", asked | {"detector": "ucsc-extract"})
                )
                await until(lambda: model_server.count == 1)
                slow.cancel()
                await until(lambda: model_server.connected == 0)
                refused = await client.call_tool("verify_claim", {"claim": ANSWER})
                assert refused.is_error
                assert "no detector that judges claims" in str(refused.content)

    asyncio.run(run())
    assert noted == [0, 1]

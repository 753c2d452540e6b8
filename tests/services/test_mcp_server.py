"""`spanlab mcp` as the SDK's own client sees it, over a real process."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client
from ports import free_port

from spanlab.testing import ModelServer

COMMAND = Path(sys.executable).with_name("spanlab")

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
    model_server.latency = 3600.0
    environment = {
        "SPANLAB_HOME": str(tmp_path),
        "OPENAI_BASE_URL": model_server.url,
        "OPENAI_API_KEY": "any",
        "SPANLAB_MODEL": "scripted",
    }
    detectors = ["--detector", "offline", "--detector", "ucsc-extract"]
    server = StdioServerParameters(command=str(COMMAND), args=["mcp", *detectors], env=environment)
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


def test_it_serves_streamable_http_at_a_port(tmp_path: Path) -> None:
    corpus, index, port = tmp_path / "tower.jsonl", tmp_path / "index", free_port()
    corpus.write_text(json.dumps({"id": "tower", "text": PASSAGE}), encoding="utf-8")
    environment = {**os.environ, "SPANLAB_HOME": str(tmp_path)}
    subprocess.run(
        [COMMAND, "index", corpus, "-o", index], env=environment, check=True, capture_output=True
    )

    async def ask() -> str:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            found = await client.call_tool("search_passages", {"query": "Who built the tower?"})
            return str(found.structured_content)

    serving = subprocess.Popen(
        [COMMAND, "mcp", "--corpus", index, "--port", str(port)],
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        asyncio.run(until(lambda: _answers(port)))
        assert PASSAGE in asyncio.run(ask())
    finally:
        serving.terminate()
        serving.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

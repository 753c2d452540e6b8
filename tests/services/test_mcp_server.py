"""`spanlab mcp` as the SDK's own client sees it, over a real process."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client

ANSWER = "The tower was built in 1989 by Ada Smith in Paris."
PASSAGE = "The tower was built in 1889 by Gustave Eiffel in Paris."


def test_an_assistant_finds_hallucinations_and_scores_them(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("spanlab")
    environment = {"SPANLAB_HOME": str(tmp_path)}
    server = StdioServerParameters(
        command=str(command), args=["mcp", "--detector", "offline"], env=environment
    )
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
                refused = await client.call_tool("verify_claim", {"claim": ANSWER})
                assert refused.is_error
                assert "no detector that judges claims" in str(refused.content)

    asyncio.run(run())
    assert noted == [0, 1]

"""`spanlab mcp` as the SDK's own client sees it, over a real process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from threading import Timer

import httpx2
import pytest
from commands import run_here
from detector_cases import ANSWER as CLAIMED
from forks import Fork
from ports import free_port
from trail_answers import TrailAnswers

from spanlab.base.errors import UsageError
from spanlab.cli.app import app
from spanlab.testing import ModelServer

COMMAND = Path(sys.executable).with_name("spanlab")

KEY = "a-key-that-is-long-enough"
ANSWER = "The tower was built in 1989 by Ada Smith in Paris."
PASSAGE = "The tower was built in 1889 by Gustave Eiffel in Paris."


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what comes by itself, however slow the machine is."""
    async with asyncio.timeout(300):
        while not holds():
            await asyncio.sleep(0.05)


def replies_to(process: subprocess.Popen[bytes], *numbers: int) -> list[bytes]:
    """Return the lines of replies, in whatever order they come; other lines are skipped."""
    assert process.stdout is not None
    marks = {b'"id":%d,' % number for number in numbers}
    wanted = (line for line in process.stdout if any(mark in line for mark in marks))
    return list(islice(wanted, len(marks)))


def request_lines(*calls: tuple[int, str, object]) -> bytes:
    asked = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, method, params in calls
    ]
    return b"".join(json.dumps(each).encode() + b"\n" for each in asked)


def score_of(answer: str) -> dict[str, object]:
    return {"name": "score_spans", "arguments": {"answer": answer, "spans": [], "gold": []}}


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}}
HELLO |= {"clientInfo": {"name": "attacker", "version": "1"}}
BROKEN = (
    *(b"", b"hello", b"7", b"[]", b"\0\xff", b'{"jsonrpc": "2.0", "id": 5', b"[" * 100_000),
    *(b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}', b"x" * 2**24),
)


def test_lines_that_are_no_requests_are_passed_over_and_half_an_emoji_is_answered(
    tmp_path: Path,
) -> None:
    """And Ctrl+C ends it, though no line comes; nobody who reads the answers ends it in silence."""
    asked = request_lines((0, "initialize", HELLO))
    later = request_lines(
        (1, "tools/call", score_of("cut \ud83d")), (2, "tools/call", score_of("whole"))
    )
    sent = asked + b"\n".join([*BROKEN, later])
    environment = os.environ | {"SPANLAB_HOME": str(tmp_path)}
    with subprocess.Popen(
        [COMMAND, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        late = Timer(120, process.kill)
        late.start()
        process.stdin.write(sent)
        process.stdin.flush()
        assert [b'"iou":1.0' in reply for reply in replies_to(process, 1, 2)] == [True, True]
        late.cancel()
        process.send_signal(signal.SIGINT)
        assert (process.wait(60), process.stderr.read()) == (0, b"")
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [COMMAND, "mcp"],
        input=asked,
        stdout=write_end,
        stderr=subprocess.PIPE,
        env=environment,
        timeout=60,
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.system("veritrail")
def test_a_line_that_is_no_request_is_answered_with_an_error(tmp_path: Path) -> None:
    lines = (b"hello", b"", b"[]", b'{"jsonrpc": "2.0", "id": 7}', b"7")
    with subprocess.Popen(
        [COMMAND, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"SPANLAB_HOME": str(tmp_path)},
    ) as process:
        sent = request_lines((0, "initialize", HELLO)) + b"\n".join([*lines, b""])
        written, _ = process.communicate(sent, timeout=120)
    replies = [json.loads(line) for line in written.splitlines()]
    refused = [(each["id"], each["error"]["code"]) for each in replies if "error" in each]
    assert refused == [(None, -32700), (None, -32600), (7, -32600), (None, -32600)]
    assert process.returncode == 0


def test_an_assistant_finds_hallucinations_scores_them_and_stops_a_call(
    tmp_path: Path, model_server: ModelServer
) -> None:
    # Each worker would take half a second to collect it.
    from mcp import Client, StdioServerParameters, stdio_client

    model_server.script(TrailAnswers())
    environment = {
        "SPANLAB_HOME": str(tmp_path),
        "OPENAI_BASE_URL": model_server.url,
        "OPENAI_API_KEY": "any",
    }
    detectors = ["offline", "ucsc-extract", "veritrail"]
    options = [f"--detector={name}" for name in detectors] + ["--model=scripted"]
    options += ["--option=veritrail.samples=3", "--model-option=temperature=0.5"]
    server = StdioServerParameters(
        command=str(COMMAND), args=["mcp", *options], env=environment, cwd=tmp_path
    )
    noted: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None = None, message: str | None = None) -> None:
        noted.append((progress, total))

    async def run() -> None:
        with Path(os.devnull).open("w") as nowhere:
            async with Client(stdio_client(server, errlog=nowhere)) as client:
                tools = (await client.list_tools()).tools
                names = [tool.name for tool in tools]
                assert names == ["find_hallucinations", "verify_claim", "score_spans"]
                assert "search" not in str([tool.description for tool in tools])
                typed = tools[0].output_schema
                assert typed is not None
                assert typed["properties"]["spans"]["items"] == {"$ref": "#/$defs/Span"}
                result = {"title": "Tower", "url": "https://a.example/", "text": PASSAGE}
                asked = {"answer": ANSWER, "question": "Who built it?", "passages": [result]}
                found = await client.call_tool("find_hallucinations", asked, progress_callback=note)
                assert not found.is_error
                said = found.structured_content
                assert said is not None
                spans = said["spans"]
                assert any("1989" in span["text"] for span in spans)
                assert spans[0]["evidence"][0]["passage"] == 0
                assert said["passages"] == [result | {"date": None}]
                plain = {"answer": PASSAGE, "passages": [PASSAGE], "lang": "en"}
                nothing = await client.call_tool("find_hallucinations", plain)
                assert (nothing.structured_content or {})["spans"] == []
                claims = await client.call_tool(
                    "find_hallucinations",
                    asked | {"answer": CLAIMED, "detector": "veritrail"},
                    progress_callback=note,
                )
                assert len((claims.structured_content or {})["claims"]) == 3
                judged = [ask for ask in model_server.requests if "ruling" in ask.text]
                assert len(judged) == 3 * 3
                assert {ask.body["temperature"] for ask in judged} == {0.2}  # of samples
                model_server.latency = 3600.0
                given = [{"start": span["start"], "end": span["end"]} for span in spans]
                score = await client.call_tool(
                    "score_spans", {"answer": ANSWER, "spans": given, "gold": given}
                )
                assert score.structured_content == {"iou": 1.0, "corr": 1.0, "f1": 1.0}
                wrong = await client.call_tool(
                    "find_hallucinations", {"answer": ANSWER, "detector": "papelo"}
                )
                assert wrong.is_error
                empty = await client.call_tool("find_hallucinations", {"answer": " "})
                assert "answer: there is no answer to check" in str(empty.content)
                assert "pydantic" not in str(empty.content)
                slow = asyncio.create_task(
                    client.call_tool("find_hallucinations", asked | {"detector": "ucsc-extract"})
                )
                before = model_server.count
                await until(lambda: model_server.count > before)
                busy = model_server.connected
                slow.cancel()
                await until(lambda: model_server.connected < busy)

    asyncio.run(run())
    assert noted == [(0, None), (1, 1), (0, None), (1, 3), (2, 3), (3, 3)]


def test_it_serves_streamable_http_at_a_port_to_who_has_the_key(tmp_path: Path) -> None:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    corpus, index, port = tmp_path / "tower.jsonl", tmp_path / "index", free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    corpus.write_text(json.dumps({"id": "tower", "text": PASSAGE}), encoding="utf-8")
    environment = {**os.environ, "SPANLAB_HOME": str(tmp_path), "SPANLAB_API_KEY": KEY}
    made = run_here(["index", str(corpus), "-o", str(index)], tmp_path, environment)
    assert made.returncode == 0, made.stderr

    async def ask() -> str:
        mine = httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"})
        async with mine, Client(streamable_http_client(url, http_client=mine)) as client:
            found = await client.call_tool("search_passages", {"query": "Who built the tower?"})
            return str(found.structured_content)

    command = ["spanlab", "mcp", "--corpus", str(index), "--port", str(port)]
    serving = Fork(command, environment, tmp_path / "log")
    try:
        asyncio.run(until(lambda: _answers(port)))
        assert PASSAGE in asyncio.run(ask())
        for wrong in ({}, {"Authorization": f"Bearer {KEY[:-1]}"}, {"Authorization": KEY}):
            refused = httpx2.post(url, json={}, headers=wrong)
            assert (refused.status_code, list(refused.json())) == (401, ["error"])
    finally:
        serving.terminate()
        serving.wait()


@pytest.mark.parametrize(
    ("key", "host"), [("", "0.0.0.0"), ("", "192.0.2.1"), ("short", "127.0.0.1")]
)
def test_it_listens_nowhere_else_without_a_key(
    key: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path))
    monkeypatch.setenv("SPANLAB_API_KEY", key)
    with pytest.raises(UsageError, match="SPANLAB_API_KEY .* 16 characters to listen at " + host):
        app(["mcp", "--port", str(free_port()), "--host", host], standalone_mode=False)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

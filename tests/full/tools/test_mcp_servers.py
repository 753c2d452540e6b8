"""Tools of a real MCP server process, also of one that is hostile, broken or wedged."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import JsonValue

from spanlab.base.errors import SpanlabError
from spanlab.tools import Toolbox
from spanlab.tools.mcp_servers import ServerConnection, server_states
from spanlab.tools.toolbox import LONGEST, ToolServer

SERVER = Path(__file__).parents[2] / "tools" / "strange_server.py"


ALLOWED = ("look_up", "key", "huge", "binary", "broken", "dies", "hangs", "breeds", "says")


def strange(seconds: float = 300.0, **more: object) -> ToolServer:
    command = (sys.executable, str(SERVER))
    fields = {"command": command, "tools": ALLOWED, "seconds": seconds, "start": 300.0}
    return ToolServer.model_validate(fields | {"env": ("STRANGE_KEY",)} | more)


async def toolbox(server: ToolServer) -> Toolbox:
    (state,) = await server_states({"strange": server})
    assert state.problem is None
    return Toolbox(state.tools)


async def tried(box: Toolbox, tool: str, **arguments: JsonValue) -> str:
    try:
        found = await box.call(f"strange.{tool}", dict(arguments))
    except (SpanlabError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"
    return " ".join(passage.text for passage in found)


def test_whatever_a_tool_gives_is_an_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANGE_KEY", "sk-very-secret-key")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-secret-key")

    async def run() -> None:
        box = await toolbox(strange())
        assert "1889" in await tried(box, "look_up", name="Aldmere")
        assert "strange.look_up(name: string): Look a tower up." in box.described()
        assert "no tool named 'strange.secret'" in await tried(box, "secret")
        assert "'name' is missing" in await tried(box, "look_up")
        assert await tried(box, "key") == "[key] None", "named variables alone, and never shown"
        assert len(await tried(box, "huge")) == LONGEST
        assert "tower" in await tried(box, "binary")
        broken = await tried(box, "broken")
        assert broken.startswith("ToolError: strange.broken: ")
        assert "secret" not in broken
        assert "Error" in await tried(box, "dies")
        assert "1889" in await tried(box, "look_up", name="Aldmere"), "it was started again"

    asyncio.run(run())


def test_a_wedged_server_costs_its_time_and_is_ended_with_what_it_started() -> None:
    async def run() -> None:
        others = _children(os.getpid())
        connection = ServerConnection("strange", strange(seconds=1.0, start=300.0))
        with pytest.raises(TimeoutError, match="the tool server 'strange' gave no answer within 1"):
            await connection.ask("call_tool", name="hangs", arguments={})
        while set(_children(os.getpid())) - set(others):
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(run(), 300))


@pytest.mark.parametrize(
    ("line", "times"),
    [
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":{"x":"\\ud83d"}}', 0, id="half-an-emoji"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":{', 0, id="half-a-reply"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":"\xff"}', 0, id="no-utf-8"),
        pytest.param(b"x" * 1000, 2**11, id="a-line-without-an-end"),
        pytest.param(b"[]," * 1000, 2**7, id="many-lists"),
    ],
)
def test_a_reply_that_nobody_can_read_is_an_error_at_once(
    line: bytes, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_REPLY_LIMIT", "1")

    async def run() -> None:
        box = await toolbox(strange(seconds=600.0))
        said = await tried(box, "says", line=line.hex(), times=times)
        assert said.startswith("ToolError: the tool server 'strange': ")
        assert "1889" in await tried(box, "look_up", name="Aldmere"), "it was started again"

    asyncio.run(asyncio.wait_for(run(), 300))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("no-such-command-anywhere",), id="not-there"),
        pytest.param((sys.executable, "-c", "while True: print('x' * 65536)"), id="endless-noise"),
        pytest.param((sys.executable, "-c", "import time; time.sleep(99)"), id="silent"),
    ],
)
def test_a_server_that_does_not_greet_says_so(command: tuple[str, ...]) -> None:
    gone = ToolServer(command=command, start=1.0)
    (state,) = asyncio.run(server_states({"gone": gone}))
    assert (state.tools, str(state.problem)[:22]) == ((), "the tool server 'gone'")


_WORKER = """
import asyncio, sys
from spanlab.tools.toolbox import ToolServer
from spanlab.tools.mcp_servers import server_states
async def run():
    (state,) = await server_states({"s": ToolServer.model_validate_json(sys.argv[1])})
    tools = {tool.name: tool for tool in state.tools}
    (brood,) = await tools["s.breeds"].run({})
    print(brood.text, flush=True)
    await tools["s." + sys.argv[2]].run({})
asyncio.run(run())
"""


@pytest.mark.parametrize(
    ("last", "killed"),
    [
        pytest.param("hangs", True, id="a-worker-that-is-killed"),
        pytest.param("breeds", False, id="a-worker-at-its-end"),
        pytest.param("dies", False, id="the-server"),
    ],
)
def test_what_a_server_started_ends_with(last: str, killed: bool) -> None:
    server = strange(tools=("hangs", "breeds", "dies")).model_dump_json()
    command = [sys.executable, "-c", _WORKER, server, last]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert worker.stdout is not None
    brood = [int(pid) for pid in worker.stdout.readline().split()]
    assert len(brood) == 2, "a child, and one of a session of its own"
    guards = _children(worker.pid) if killed else []
    servers = [server for guard in guards for server in _children(guard)]
    if killed:
        worker.send_signal(signal.SIGKILL)
    worker.wait()
    deadline = time.monotonic() + 60
    while any(map(_is_alive, [*brood, *guards, *servers])) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in [*brood, *guards, *servers] if _is_alive(pid)]
    worker.stdout.close()


def _children(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(status.parent.name))
    return found


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}

"""Calls as they go over the wire, from any thread and event loop."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from model_task import Task, marked

from spanlab.models import Meter, ModelChoice
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply

pytestmark = pytest.mark.usefixtures("four")

Choose = Callable[..., ModelChoice]


def test_many_calls_are_under_way_at_once(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    """No connection pool holds back what the runner allows."""
    arrived = threading.Event()

    def together(ask: ModelRequest) -> ScriptedReply:
        if ask.number == 199:
            arrived.set()
        return marked(str(ask.number), delay=2.0 if ask.number < 199 else 0.0)

    model_server.script(together)
    task = Task(choose(), Meter(), cache)

    async def all_at_once() -> None:
        await asyncio.gather(*(task.aask(str(number)) for number in range(200)))

    asyncio.run(all_at_once())
    assert arrived.is_set()
    assert model_server.busiest >= 128


def test_a_process_ends_without_a_word_on_its_connections(choose: Choose) -> None:
    """Those of a loop that ended, of one that was closed, of threads, and of a model forgotten."""
    program = (
        "import asyncio, gc, sys\n"
        "from model_task import Task\n"
        "from spanlab.models import Meter, ModelChoice\n"
        "choice = ModelChoice.model_validate_json(sys.argv[1])\n"
        "task, forgotten = Task(choice, Meter(), None), Task(choice, Meter(), None)\n"
        "loop = asyncio.new_event_loop()\n"
        "print(task.ask('1'), asyncio.run(task.aask('2')))\n"
        "print(loop.run_until_complete(task.aask('3')))\n"
        "loop.close()\n"
        "forgotten.ask('4'), asyncio.run(forgotten.aask('5'))\n"
        "del forgotten\n"
        "gc.collect()\n"
    )
    tests = Path(__file__).resolve().parents[2]
    environ = {**os.environ, "PYTHONPATH": str(tests / "model_server")}
    command = [sys.executable, "-c", program, choose().model_dump_json()]
    ended = subprocess.run(command, env=environ, timeout=240, check=True, capture_output=True)
    assert (ended.stdout, ended.stderr) == (b"4 4\n4\n", b"")

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
    assert _printed_by(program, choose()) == b"4 4\n4\n"


def test_a_call_goes_out_while_another_thread_imports_what_openai_looks_into(
    choose: Choose,
) -> None:
    """openai takes the parts of httpx that it finds there, even of one half imported."""
    program = """
import asyncio, sys, threading
from importlib.util import spec_from_loader
from model_task import Task
from spanlab.models import Meter, ModelChoice

class Halted:
    called = threading.Event()
    create_module = lambda *_: None

    def find_spec(self, name, path, target=None):
        return spec_from_loader(name, self) if name == "httpx._api" else None

    def exec_module(self, module):
        self.called.wait()

task = Task(ModelChoice.model_validate_json(sys.argv[1]), Meter(), None)
sys.meta_path.insert(0, Halted())
threading.Thread(target=__import__, args=("httpx",)).start()
while "httpx" not in sys.modules:
    pass
try:
    print(asyncio.run(task.aask("1")))
finally:
    Halted.called.set()
"""
    assert _printed_by(program, choose()) == b"4\n"


def _printed_by(program: str, choice: ModelChoice) -> bytes:
    """Return what a program of its own prints, which is given a model; it may warn of nothing."""
    tests = Path(__file__).resolve().parents[2]
    environ = {**os.environ, "PYTHONPATH": str(tests / "model_server")}
    command = [sys.executable, "-c", program, choice.model_dump_json()]
    ended = subprocess.run(command, env=environ, timeout=240, check=True, capture_output=True)
    assert ended.stderr == b""
    return ended.stdout

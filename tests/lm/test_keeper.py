"""Calls in threads are made by a process of their own, which outlives the one that asks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from model_task import Task, marked
from working_jobs import wait_until

from spanlab.lm import Meter, ModelChoice, Usage, translate
from spanlab.testing import ModelServer, fail, in_turn, say

Choose = Callable[..., ModelChoice]

ASKING = """
import sys
from pathlib import Path
from model_task import Task
from spanlab.lm import Meter, ModelChoice

choice = ModelChoice.model_validate_json(sys.argv[1])
Task(choice, Meter(), Path(sys.argv[2])).ask("?")
"""


def asking(choice: ModelChoice, cache: Path) -> subprocess.Popen[bytes]:
    """Ask in another process, which leads its own group as one does that a shell started."""
    helpers = Path(__file__).resolve().parents[1] / "model_server"
    return subprocess.Popen(
        [sys.executable, "-c", ASKING, choice.model_dump_json(), str(cache)],
        env={**os.environ, "PYTHONPATH": str(helpers), "SPANLAB_HOME": str(cache)},
        start_new_session=True,
    )


def keepers(mark: str) -> list[int]:
    """Return the keepers that were started with these words in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            command, environ = (process / "cmdline").read_text(), process / "environ"
            if "spanlab.lm.keeper" in command and mark in environ.read_text():
                found.append(int(process.name))
        except (OSError, ValueError):
            continue  # no process, or none any more
    return found


def test_who_asked_is_killed_and_the_answer_is_kept(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    model_server.script(lambda ask: marked("4", delay=1.0))
    process = asking(choose(), cache)
    wait_until(lambda: model_server.count == 1, "the question")
    assert len(keepers(str(cache))) == 1
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not model_server.answered
    wait_until(lambda: not keepers(str(cache)), "the end of the process that made the call")
    meter = Meter()
    assert Task(choose(), meter, cache).ask("?") == "4"
    assert meter.usage == Usage(from_cache=1)
    assert model_server.count == 1


def test_nothing_is_left_of_a_process_that_ends(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    model_server.script(lambda ask: marked("4"))
    process = asking(choose(), cache)
    assert process.wait(120) == 0
    wait_until(lambda: not keepers(str(cache)), "the end of the process that made the call")


def test_a_keeper_that_is_killed_is_named_and_replaced(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    model_server.script(lambda ask: say("ok", delay=30.0))
    ours = {pid for pid in keepers("") if _parent(pid) == os.getpid()}
    for pid in ours:  # of another test in this process
        os.kill(pid, signal.SIGKILL)
    failed: list[str] = []

    def fail_to_ask() -> None:
        try:
            Task(choose(), Meter(), cache).ask("?")
        except Exception as error:  # noqa: BLE001 - dspy's own around ours
            failed.append(str(translate(error)))

    thread = threading.Thread(target=fail_to_ask)
    thread.start()
    wait_until(lambda: model_server.count == 1, "the question")
    (now,) = (pid for pid in keepers("") if _parent(pid) == os.getpid() and pid not in ours)
    os.kill(now, signal.SIGKILL)
    thread.join()
    assert "the process that makes model calls has ended" in failed[0]
    model_server.script(lambda ask: marked("4"))
    assert Task(choose(), Meter(), cache).ask("?") == "4"


def test_calls_beyond_those_that_the_keeper_makes_at_once_are_made_all_the_same(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    model_server.script(lambda ask: marked("4", delay=1.0))
    task = Task(choose(), Meter(), cache)
    questions = [str(number) for number in range(40)]
    with ThreadPoolExecutor(40) as pool:
        assert list(pool.map(task.ask, questions)) == ["4"] * 40
    assert model_server.busiest > 32
    assert [task.ask(question) for question in questions] == ["4"] * 40
    assert model_server.count == 40


def test_what_is_no_answer_is_not_kept(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    task = Task(choose(), Meter(), cache)
    none = (say("half an ans", finish="length"), say(None, refusal="no"), fail(500))
    model_server.script(in_turn(*none, marked("4")))
    for _ in none:
        with pytest.raises(Exception, match=r"cut off|refused|scripted"):
            task.ask("?")
    assert task.ask("?") == "4"
    assert model_server.count == 4


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

"""What is parsed in a sandbox ends its process at worst, and the next call finds another one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from spanlab.base import processes
from spanlab.base.errors import SandboxError
from spanlab.base.processes import Sandbox

GIB = 2**30


def spin() -> None:
    """Compute for ever, and hold the interpreter's lock meanwhile."""
    sum(iter(int, 1))


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def panic() -> None:
    """What Rust's panics are: no Exception."""
    raise BaseException("index out of bounds")


def fill() -> int:
    return len(bytearray(8 * GIB))


def much() -> bytes:
    return bytes(65 * 2**20)


ENDINGS: dict[Callable[[], object], str] = {
    spin: "^it takes more than 1 s of processor time$",
    crash: r"^it ends the process that reads it \(SIGSEGV\)$",
    sys.exit: "^SystemExit: ",
    panic: "^BaseException: index out of bounds$",
    fill: "^it takes more than 1 GiB of memory$",
    much: "^what is read of it takes more than 64 MiB$",
}


@pytest.fixture(scope="module")
def pool() -> Sandbox:
    return Sandbox(1, memory=1)


@pytest.mark.parametrize("work", ENDINGS)
def test_what_ends_a_process_is_an_error_and_the_next_call_finds_another(
    work: Callable[[], object], pool: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_CLOCK", 60)  # on a busy machine a second of it takes a while
    before = pool.run(1, os.getpid)
    with pytest.raises(SandboxError, match=ENDINGS[work]):
        pool.run(1, work)
    assert pool.run(1, os.getpid) != before


SCRIPT = """
import os, signal, sys, threading, time
from spanlab.base.processes import parsers

print(parsers().run(5, os.getpid), flush=True)
threading.Timer(0.2, os.kill, (os.getpid(), signal.{signal})).start()
begun = parsers().submit(100, time.sleep, 3600)
begun.result()
"""


@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_processes_end_with_a_script_that_has_no_main_guard(ending: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(signal=ending))
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    (child,) = map(int, done.stdout.split())
    deadline = threading.Event()
    for _ in range(200):
        if not Path(f"/proc/{child}").exists():
            break
        deadline.wait(0.05)
    else:
        pytest.fail("the process outlives the one that started it")

"""`spanlab demo` and `spanlab serve` as somebody starts and stops them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READY = "spanlab is at "


class Server:
    """A running command, its lines on standard error so far, and its address once it has one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def address(self) -> str:
        assert self._ready.wait(300), self.lines
        line = next((line for line in self.lines if line.startswith(READY)), None)
        assert line is not None, self.lines
        return line.removeprefix(READY).split()[0]

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        status = self.process.wait(120)
        self._reader.join(60)
        return status

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(READY):
                self._ready.set()
        self._ready.set()  # it ended: nobody shall wait for more


@contextmanager
def running(command: list[str], home: Path) -> Iterator[Server]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if "SPANLAB" not in name and "MAKE" not in name and name != "ARGS"
    }  # what `make test` is given is not for a `make run` in it
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment | {"SPANLAB_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield Server(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def spanlab(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("spanlab")), *arguments]


def test_demo_serves_the_samples_and_keeps_them(tmp_path: Path) -> None:
    with running(spanlab("demo"), tmp_path) as server:
        with urllib.request.urlopen(server.address, timeout=60) as page:
            assert page.status == 200
        assert any("dataset 'samples' is ready: 67 items" in line for line in server.lines)
        assert server.stop() == 0
        assert server.lines[-1] == "stopped"
        assert not any("Traceback" in line for line in server.lines)

    with running(spanlab("demo"), tmp_path) as server:
        assert server.address.startswith("http://localhost:")
        assert not any("is ready" in line for line in server.lines)
        assert server.stop(signal.SIGTERM) == 0


def test_a_taken_port_is_said_and_without_a_wish_the_next_one_is_used(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            spanlab("serve", "--port", str(port)),
            env=os.environ | {"SPANLAB_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 1
    assert f"port {port} is in use" in done.stderr


@pytest.mark.parametrize("target", ["run", "test", "check", "bench"])
def test_make_has_every_command_that_the_readme_names(target: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_make_run_serves(tmp_path: Path) -> None:
    with (
        running(["make", "run"], tmp_path) as server,
        urllib.request.urlopen(server.address, timeout=60) as page,
    ):
        assert page.status == 200

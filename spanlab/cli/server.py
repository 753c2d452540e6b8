"""The app as a server on this machine: starts Streamlit, waits for it, and prints the address."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from types import FrameType

from spanlab.cli.progress import say
from spanlab.errors import InputError, SpanlabError

_HOST = "127.0.0.1"
_FIRST_PORT = 8501
_PORTS_TRIED = 50
_START_SECONDS = 60


def serve(port: int | None = None) -> int:
    """Serve the app on ``port`` (None: 8501 or the next free one) until it is stopped.

    Returns:
        The exit status: 0 after Ctrl+C or SIGTERM.

    Raises:
        InputError: the wanted port is taken.
        SpanlabError: the server did not start.
    """
    chosen = _free_port(port)
    server = subprocess.Popen(command(chosen), stdout=subprocess.DEVNULL)
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        _wait_until_it_answers(server, chosen)
        say(f"spanlab is at http://localhost:{chosen}  (Ctrl+C stops it, all work is kept)")
        return server.wait()
    except KeyboardInterrupt:
        say("stopped")
        return 0
    finally:
        server.terminate()
        server.wait()


def command(port: int) -> list[str]:
    """Return the command that serves the app on ``port`` of this machine, and nowhere else."""
    return [sys.executable, "-m", "spanlab.ui.server", str(port)]


def _free_port(wanted: int | None) -> int:
    tried = range(_FIRST_PORT, _FIRST_PORT + _PORTS_TRIED) if wanted is None else (wanted,)
    for port in tried:
        if _is_free(port):
            return port
    if wanted is None:
        raise InputError(f"ports {tried[0]} to {tried[-1]} are all in use", expected="--port N")
    raise InputError(
        f"port {wanted} is in use", expected="a free port, or none for spanlab to choose"
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
        return True


def _wait_until_it_answers(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise SpanlabError(f"the server stopped with status {server.returncode}; see above")
        try:
            health = f"http://{_HOST}:{port}/_stcore/health"
            with urllib.request.urlopen(health, timeout=1):  # noqa: TID251 - our own, unread
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SpanlabError(f"the server did not answer within {_START_SECONDS} seconds")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt

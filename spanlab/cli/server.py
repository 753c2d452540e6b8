"""The app as a server on this machine: chooses a port, and becomes the server."""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn

from spanlab.errors import InputError

_HOST = "127.0.0.1"
_FIRST_PORT = 8501
_PORTS_TRIED = 50


def serve(port: int | None = None) -> NoReturn:
    """Serve the app on ``port`` (None: 8501 or the next free one) until it is stopped.

    This process becomes the server: none is left behind that somebody has to stop.

    Raises:
        InputError: the wanted port is taken.
    """
    os.execv(sys.executable, command(_free_port(port)))  # noqa: S606 - no shell is wanted


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

"""The app as a server on this machine: this process becomes it."""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn

from spanlab.errors import InputError

_HOST = "127.0.0.1"


def serve(port: int | None = None) -> NoReturn:
    """Serve the app on ``port`` (None: 8501 or the next free one) until it is stopped.

    This process becomes the server: none is left behind that somebody has to stop.

    Raises:
        InputError: the wanted port is taken.
    """
    if port is not None and not _is_free(port):
        raise InputError(
            f"port {port} is in use", expected="a free port, or none for spanlab to choose"
        )
    os.execv(sys.executable, command(port))  # noqa: S606 - no shell is wanted


def command(port: int | None) -> list[str]:
    """Return the command that serves the app on ``port`` of this machine, and nowhere else."""
    wanted = [] if port is None else [str(port)]
    return [sys.executable, "-m", "spanlab.ui.server", *wanted]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
        return True

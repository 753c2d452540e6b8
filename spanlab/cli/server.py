"""The app as a server on this machine: this process becomes it."""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn

from spanlab.errors import InputError, UsageError

_HOST = "127.0.0.1"


def become_server(
    port: int | None = None, host: str = _HOST, *, log_json: bool = False
) -> NoReturn:
    """Serve the app on ``port`` (None: 8501 or the next free one) until it is stopped.

    This process becomes the server: none is left behind that somebody has to stop.

    Raises:
        InputError: the wanted port is taken.
        UsageError: other machines would reach it, and nobody said under which names.
    """
    from spanlab.workflows.import_files import LOOPBACK, allowed_hosts

    if host not in LOOPBACK and allowed_hosts() == LOOPBACK:
        raise UsageError(
            f"the app would listen on {host}: SPANLAB_ALLOWED_HOSTS names the hosts that it "
            "answers as to other machines"
        )
    if port is not None and not _is_free(port, host):
        raise InputError(
            f"port {port} is in use", expected="a free port, or none for spanlab to choose"
        )
    os.execv(sys.executable, server_command(port, host, log_json=log_json))  # noqa: S606 - no shell is wanted


def server_command(port: int | None, host: str = _HOST, *, log_json: bool = False) -> list[str]:
    """Return the command that serves the app at an address, this machine's own by default."""
    wanted = [host, str(port or ""), "json" if log_json else ""]
    return [sys.executable, "-m", "spanlab.ui.server", *wanted]


def _is_free(port: int, host: str) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True

"""Ports for servers that tests start."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress


def free_port() -> int:
    """Return a port of this machine that is free, and stays so: systems give others unasked."""
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port

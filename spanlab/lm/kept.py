"""Model calls that a process of their own makes, so that no answer is lost with this one."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dspy.lm15 import TransportError

from spanlab.lm.frames import Told, pack, receive

POSSIBLE = hasattr(socket, "send_fds")  # not on Windows, where calls are made in this process
_MOST = 32  # calls under way at once; httpx takes many times as long for a hundred
_END_SECONDS = 1.0  # that the keeper is waited for at the end, if nothing is under way


@dataclass
class Keeping:
    """Under which key of the cache an answer belongs, and whether it is there."""

    slot: str
    done: bool = False


_keeping: ContextVar[Keeping] = ContextVar("_keeping")


@contextmanager
def keeping(slot: str) -> Iterator[Keeping]:
    """Say where the answer of the call inside the block belongs."""
    kept = Keeping(slot)
    token = _keeping.set(kept)
    try:
        yield kept
    finally:
        _keeping.reset(token)


@dataclass(frozen=True)
class Reply:
    """An endpoint's reply, whole; what a client asks of a transport's response."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    http_version: str = "HTTP/1.1"

    def read(self) -> bytes:
        """Return the body."""
        return self.body

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""


class KeptTransport:
    """Makes a client's requests through the keeper, in threads; inside ``keeping`` alone.

    Args:
        folder: the directory of the cache that answers are put into.
        limits: ``connect_timeout``, ``read_timeout`` and ``write_timeout`` in seconds, ``proxy``.
        direct: makes the requests beyond those that the keeper serves at once without delay.
    """

    def __init__(self, folder: Path, limits: dict[str, Any], direct: Any) -> None:
        self._direct = direct
        self._turns = threading.Semaphore(_MOST)
        seconds = {part: limits[f"{part}_timeout"] for part in ("connect", "read", "write")}
        self._same = {"folder": str(folder.resolve()), "proxy": limits["proxy"], "seconds": seconds}

    def stream(self, request: Any) -> Any:
        """Make a request; return the whole reply, or what ``direct`` returns.

        Raises:
            TransportError: there is none.
        """
        if not self._turns.acquire(blocking=False):
            return self._direct.stream(request)
        try:
            return self._kept(request)
        finally:
            self._turns.release()

    def _kept(self, request: Any) -> Reply:
        kept = _keeping.get()
        head = {
            **self._same,
            "slot": kept.slot,
            "method": request.method,
            "url": request.url,
            "headers": request.headers,
        }
        told, body = _keeper().ask(pack(head, request.body))
        if "error" in told:
            raise TransportError(told["error"])
        kept.done = told["kept"]
        return Reply(told["status"], told["reason"], _plain(told["headers"]), body)


class _Keeper:
    """The keeper of this process, and the connections to it that are free."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        # The interpreter alone would find modules in the directory that it is started in.
        path = os.pathsep.join(filter(None, sys.path))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "spanlab.lm.keeper", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # whoever kills this process's group leaves it alone
            )
        self._free: list[socket.socket] = []
        self._lost = False

    @property
    def alive(self) -> bool:
        return not self._lost and self._process.poll() is None

    def let_go(self) -> None:
        """Close what leads to it; it ends as soon as what is under way has been answered."""
        self._control.close()
        while self._free:
            self._free.pop().close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)

    def ask(self, packed: bytes) -> Told:
        """Tell it something and wait for what it answers.

        Raises:
            TransportError: it is gone.
        """
        try:
            connection = self._connection()
            try:
                connection.sendall(packed)
                told = receive(connection)
            except BaseException:
                connection.close()
                raise
        except (EOFError, OSError) as error:
            self._lost = True  # which the system may say of the process a moment later
            raise TransportError("the process that makes model calls has ended") from error
        self._free.append(connection)
        return told

    def _connection(self) -> socket.socket:
        with suppress(IndexError):
            return self._free.pop()
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        return ours


_started: dict[int, _Keeper] = {}
_starting = threading.Lock()


def _keeper() -> _Keeper:
    """Return this process's keeper, which is started if there is none."""
    with _starting:
        keeper = _started.get(os.getpid())
        if keeper is not None and not keeper.alive:
            keeper.let_go()
            keeper = None
        if keeper is None:
            keeper = _started[os.getpid()] = _Keeper()
            atexit.register(keeper.let_go)
        return keeper


def _plain(headers: list[list[str]]) -> list[tuple[str, str]]:
    """Return the headers of a body that is not compressed any more."""
    gone = {"content-encoding", "content-length", "transfer-encoding"}
    return [(name, value) for name, value in headers if name.lower() not in gone]

"""Starts a command that ends with the process that asked for it, and so do all its descendants.

    python -I guard.py PARENT BYTES VALUES COMMAND ARGUMENT…

Whoever is killed with SIGKILL cannot end the servers that it has started, and a server's children
may leave its process group and session: on Linux the kernel tells this process when its parent
ends, and gives it every descendant whose own parent has ended. Elsewhere the end of standard input
has to do. It is run as a file, without the package: it stays as long as the server does. On Linux
what the server writes passes through here, too, as whoever reads it keeps a line until it ends.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Final, NoReturn

_SET_PDEATHSIG: Final = 1  # of prctl(2)
_SET_CHILD_SUBREAPER: Final = 36
_PIECE: Final = 2**16  # bytes that are read at a time
_CUT: Final = b" jsonrpc\n"  # no JSON, whatever it ends, and taken for a reply that is none
_PATIENCE: Final = 2.0  # seconds in which what a server has written last is taken


def main(parent: int, longest: int, values: int, command: list[str]) -> None:
    """Run ``command`` until it ends or ``parent``, our own, does; then end all that it started.

    Its lines are cut after ``longest`` bytes, or as many lists and objects as ``values``.
    """
    if sys.platform != "linux":
        os.execvp(command[0], command)  # noqa: S606 - the command is the user's own configuration
    control = ctypes.CDLL(None).prctl
    signal.signal(signal.SIGTERM, _end)
    control(_SET_CHILD_SUBREAPER, 1)
    control(_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the kernel knew
        _end()
    written, its_output = os.pipe()
    server = os.fork()
    if not server:
        os.dup2(its_output, 1)
        control(_SET_PDEATHSIG, signal.SIGKILL)  # where this process is killed, too
        os.execvp(command[0], command)  # noqa: S606 - as above
    os.close(its_output)
    passing_on = Thread(target=_pass_on, args=(written, longest, values), daemon=True)
    passing_on.start()
    while os.wait()[0] != server:
        pass
    _end_others()
    passing_on.join(_PATIENCE)
    os._exit(1)


def _pass_on(written: int, longest: int, values: int) -> None:
    length = opened = 0
    cut = False
    while piece := os.read(written, _PIECE):
        for part in re.split(rb"(?<=\n)", piece):
            length += len(part)
            opened += part.count(b"[") + part.count(b"{")
            if not cut:
                cut = length > longest or opened > values
                os.write(1, _CUT if cut else part)
            if part.endswith(b"\n"):
                length = opened = 0
                cut = False


def _end(*_: object) -> NoReturn:
    _end_others()
    os._exit(1)


def _end_others() -> None:
    # The children of a child that is killed are ours next, until there are none.
    with suppress(ChildProcessError):
        while True:
            for process in _children():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            os.wait()


def _children() -> list[int]:
    own = str(os.getpid())
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if status.read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                children.append(int(status.parent.name))
    return children


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])

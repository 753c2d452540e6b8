"""Starts a command that ends with the process that asked for it, and so do all its descendants.

    python -I guard.py PARENT COMMAND ARGUMENT…

Whoever is killed with SIGKILL cannot end the servers that it has started, and a server's children
may leave its process group and session: on Linux the kernel tells this process when its parent
ends, and gives it every descendant whose own parent has ended. Elsewhere the end of standard input
has to do. It is run as a file, without the package: it stays as long as the server does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

_SET_PDEATHSIG: Final = 1  # of prctl(2)
_SET_CHILD_SUBREAPER: Final = 36


def main(parent: int, command: list[str]) -> None:
    """Run ``command`` until it ends or ``parent``, our own, does; then end all that it started."""
    if sys.platform != "linux":
        os.execvp(command[0], command)  # noqa: S606 - the command is the user's own configuration
    control = ctypes.CDLL(None).prctl
    signal.signal(signal.SIGTERM, _end)
    control(_SET_CHILD_SUBREAPER, 1)
    control(_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the kernel knew
        _end()
    server = os.fork()
    if not server:
        control(_SET_PDEATHSIG, signal.SIGKILL)  # where this process is killed, too
        os.execvp(command[0], command)  # noqa: S606 - as above
    while os.wait()[0] != server:
        pass
    _end()


def _end(*_: object) -> NoReturn:
    # The children of a child that is killed are ours next, until there are none.
    with suppress(ChildProcessError):
        while True:
            for process in _children():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            os.wait()
    os._exit(1)


def _children() -> list[int]:
    own = str(os.getpid())
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if status.read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                children.append(int(status.parent.name))
    return children


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])

"""Starts a command that ends with the process that started it, however that one ends.

    python -m spanlab.tools.guard COMMAND ARGUMENT…

A server that is killed with SIGKILL cannot end the servers it has started; on Linux the kernel
does, once it was asked to. Elsewhere the end of standard input has to do.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_SET_PDEATHSIG: Final = 1  # of prctl(2); it outlives exec(2)


def main(command: list[str]) -> None:
    """Become ``command``; does not return."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the kernel knew
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - the command is the user's own configuration


if __name__ == "__main__":
    main(sys.argv[1:])

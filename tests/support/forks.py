"""Processes that start without imports: forks of one that has imported everything.

Importing all that a worker needs takes two seconds of a processor, and tests start dozens of
workers. The process that is forked is multiprocessing's fork server, one for each test process.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from spanlab.cli import main
from spanlab.jobs.views import KINDS

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(
    [
        *("alembic.command", "dbos._sys_db_sqlite", "dspy", "psycopg", "spacy", "spanlab.cli.app"),
        *("spanlab.jobs.commands", "spanlab.jobs.worker"),
        *("spanlab.models.model", *(each.place.partition(":")[0] for each in KINDS.values())),
        # No pages: what they import asks for the offers of packages, which a fork may have more of.
        *("pandas", "pyarrow", "altair", "spanlab.app.guard"),
    ]
)


class Fork:
    """A `spanlab` command in a process of its own, used like ``subprocess.Popen``.

    Args:
        command: the command line, from "spanlab" on.
        environ: all environment variables.
        log: the file to which its output is added.
        folder: the working directory; by default that of the tests.
        out: the file for its standard output alone; by default the log.
        act: what it does, returning its exit status if that is not 0; by default the command.
    """

    def __init__(
        self,
        command: list[str],
        environ: Mapping[str, str],
        log: Path,
        *,
        folder: Path | None = None,
        out: Path | None = None,
        act: Callable[[], object] = main,
    ) -> None:
        given = (command, dict(environ), folder or Path.cwd(), out or log, log, act)
        self._process = _FORKING.Process(target=_run, args=given)
        # Streamlit's AppTest leaves its script as the main module, which a fork would run first.
        main_module, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            self._process.start()
        finally:
            sys.modules["__main__"] = main_module

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return its exit status; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float = 120) -> int:
        """Wait until it ends, for some seconds at most; return its exit status."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a fork", timeout)
        return self._process.exitcode

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._process.kill()


def run_forked(
    command: list[str],
    environ: Mapping[str, str],
    folder: Path,
    act: Callable[[], object] = main,
) -> subprocess.CompletedProcess[str]:
    """Run a `spanlab` command, or ``act``, to its end, used like ``subprocess.run``."""
    with TemporaryDirectory() as kept:
        out, err = Path(kept, "out"), Path(kept, "err")
        process = Fork(command, environ, err, folder=folder, out=out, act=act)
        try:
            status = process.wait(timeout=300)
        finally:
            process.kill()
        return subprocess.CompletedProcess(command, status, out.read_text(), err.read_text())


def run_code(
    code: str, environ: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program as ``python -c`` does, but that packages are imported."""
    return run_forked(["-c"], environ, folder, act=partial(_execute, code))


def _execute(code: str) -> None:
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


def _run(
    command: list[str],
    environ: Mapping[str, str],
    folder: Path,
    out: Path,
    err: Path,
    act: Callable[[], object],
) -> None:
    gc.freeze()  # what was imported: a look at all of it would copy its memory
    os.environ.clear()
    os.environ.update(environ)
    sys.path[:0] = filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))
    os.chdir(folder)
    sys.argv = command
    for number, file in ((1, out), (2, err)):
        with file.open("ab") as opened:
            os.dup2(opened.fileno(), number)
    try:
        status = act()
    finally:
        # In an interpreter's order. The other way round multiprocessing closes the queues by which
        # pools that are not shut down yet tell their processes to end, and waits for ever.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()  # multiprocessing leaves them out
    sys.exit(status if isinstance(status, int) else 0)

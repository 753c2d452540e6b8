"""The `spanlab` command in this process, or forked where it serves: a start costs much once."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from unittest import mock

from forks import Fork

from spanlab.cli import main

_AT = "spanlab is at"
SERVERS = {"serve": _AT, "demo": _AT, "api": "http", "mcp": "", "worker": "work"}


def run_here(
    arguments: list[str], folder: Path, environment: Mapping[str, str]
) -> CompletedProcess[str]:
    """Run `spanlab ARGUMENTS…` in a folder, as the installed command does.

    Args:
        arguments: what follows the command's name.
        folder: the working directory.
        environment: all environment variables.
    """
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status: object = 0
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "argv", ["spanlab", *arguments]),
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    said, remarks = (_text(each) for each in (out, err))
    return CompletedProcess(arguments, status if isinstance(status, int) else 1, said, remarks)


def _text(stream: TextIOWrapper) -> str:
    raw = stream.detach()
    assert isinstance(raw, BytesIO)
    return raw.getvalue().decode()


@contextmanager
def serving(
    arguments: list[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[Callable[[], str]]:
    """Start a command that runs until Ctrl+C, wait for its first words, and end it afterwards.

    Yields:
        What returns the words that it has said so far.
    """
    with TemporaryDirectory() as kept:
        out, err = Path(kept, "out"), Path(kept, "err")
        err.touch()
        process = Fork(["spanlab", *arguments], environment, err, folder=folder, out=out)
        try:
            words = SERVERS[arguments[0]]
            if words or "--port" in arguments:
                while not re.search(f"{words}.*\n", err.read_text()):
                    assert process.poll() is None, f"{arguments}\n{err.read_text()}"
                    time.sleep(0.05)
            yield err.read_text
        finally:
            process.terminate()
            process.wait(60)

"""The `spanlab` command in this process: what a start of its own would cost is paid once."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from spanlab.cli import main


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

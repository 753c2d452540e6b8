"""The real `spanlab` command in a directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def spanlab(tmp_path: Path) -> Run:
    """Run `spanlab ARGUMENTS…` in ``tmp_path`` with a database there; returns the process."""
    command = Path(sys.executable).with_name("spanlab")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SPANLAB_")
    }

    def run(
        *arguments: str | Path, stdout: int | IO[bytes] = subprocess.PIPE, **changes: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *arguments],
            cwd=tmp_path,
            env=environment | {"SPANLAB_HOME": str(tmp_path / "home")} | changes,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )

    return run

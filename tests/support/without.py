"""`make without SYSTEM=papelo`: the tests of the rest in a copy of the repository without a system.

A system is three folders, ``spanlab/systems/NAME``, ``tests/systems/NAME`` and
``tests/full/systems/NAME``; what the guide says of it elsewhere goes with `make guide`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]


def take_out(system: str, copy: Path) -> None:
    """Copy what git has to a folder, and take a system out there."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for tree in ("spanlab", "tests", "tests/full"):
        shutil.rmtree(copy / tree / "systems" / system, ignore_errors=tree != "spanlab")


def main(system: str, *words: str) -> int:
    """Return the status of pytest with some words, by default of the fast tier and the lints."""
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        take_out(system, copy)
        environment = os.environ | {"PYTHONPATH": str(copy)}
        python = [sys.executable]
        made = [*python, "tests/support/guide_parts.py"]
        subprocess.run(made, cwd=copy, env=environment, check=True)
        git = ["git", "init", "--quiet", "."], ["git", "add", "."]
        for command in git:  # lints ask it
            subprocess.run(command, cwd=copy, check=True)
        asked = words or ("--ignore", "tests/full", "-k", "not postgresql", "tests")
        tests = [*python, "-m", "pytest", *asked]
        return subprocess.run(tests, cwd=copy, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

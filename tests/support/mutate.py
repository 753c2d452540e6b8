"""`make mutate FILES=…`: changes that a machine makes in files, and which of them no test notices.

Each change runs the fast tests of its room that reach it, in a copy of the repository: about a
second a change.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutate"


def changed() -> list[str]:
    """Return the files of ours that differ from main."""
    told = subprocess.run(
        ["git", "diff", "--name-only", "--merge-base", "main", "--", "spanlab"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in told.stdout.splitlines() if name.endswith(".py")]


def copy(files: list[str]) -> None:
    """Lay out the repository as it stands, told which files to change and which tests to run."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    shutil.rmtree(COPY, ignore_errors=True)  # where changes have what earlier tests said of them
    for name in filter(None, tracked):
        target = COPY / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, target)
    rooms = dict.fromkeys(f"tests/{Path(name).parts[1]}" for name in files)
    tests = [room for room in rooms if (ROOT / room).is_dir()]
    if not tests:
        raise SystemExit(f"no tests stand in {', '.join(rooms)}")
    beside = sorted({name.partition("/")[0] for name in tracked if name} - {"spanlab", "tests"})
    with (COPY / "pyproject.toml").open("a", encoding="utf-8") as settings:
        settings.write(
            "\n[tool.mutmut]\nsource_paths = ['spanlab']\n"
            f"only_mutate = {files}\nalso_copy = {beside}\n"
            f"pytest_add_cli_args_test_selection = {tests}\n"
            "pytest_add_cli_args = ['-k', 'not postgresql']\n"
        )


def main(files: list[str]) -> None:
    """Change the files, and print what survived."""
    files = files or changed()
    if not files:
        raise SystemExit("no file differs from main: FILES=spanlab/measure/powered.py names some")
    copy(files)
    tool = str(ROOT / ".venv" / "mutate")
    about = {**os.environ, "PYTHONPATH": f"{tool}:{COPY}", "SPANLAB_SHARED": "/nonexistent"}
    mutmut = [sys.executable, "-m", "mutmut"]
    subprocess.run([*mutmut, "run", "--max-children", "2"], cwd=COPY, env=about, check=True)
    told = subprocess.run(
        [*mutmut, "results", "--all", "true"],
        cwd=COPY,
        env=about,
        check=True,
        capture_output=True,
        text=True,
    )
    became = [line.strip().rpartition(": ") for line in told.stdout.splitlines() if ": " in line]
    killed = sum(fate in ("killed", "timeout") for _, _, fate in became)
    for name, _, fate in became:
        if fate in ("survived", "no tests"):
            print(f"\n{fate}: ", end="", flush=True)
            subprocess.run([*mutmut, "show", name], cwd=COPY, env=about, check=True)
    print(f"\n{killed:,} of {len(became):,} changes were noticed ({killed / len(became):.0%})")


if __name__ == "__main__":
    main(sys.argv[1:])

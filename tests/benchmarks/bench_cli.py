"""How long the command line takes to say what it can do, beside Python's own start."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

_RUNS = 15


def main() -> None:
    """Print the median of several runs of each command."""
    spanlab = str(Path(sys.executable).with_name("spanlab"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "spanlab --help": [spanlab, "--help"],
        "spanlab score --help": [spanlab, "score", "--help"],
    }
    print("command line: median of", _RUNS, "runs")
    for name, command in commands.items():
        seconds = statistics.median(_time(command) for _ in range(_RUNS))
        print(f"  {name:22} {seconds * 1000:6.0f} ms")


def _time(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

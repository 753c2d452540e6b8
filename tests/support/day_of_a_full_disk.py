"""Uses spanlab on a disk until it is full, and then some: prints what each command came to.

    python day_of_a_full_disk.py DISK

It runs in a process of its own, because nobody else sees the disk.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from commands import run_here

LONG = "word " * 20_000


def main(disk: Path) -> None:
    """Use the disk."""
    said: list[tuple[str, int, str]] = []
    environment = {**os.environ, "SPANLAB_HOME": str(disk / "home")}

    def spanlab(what: str, *words: str) -> None:
        done = run_here(list(words), disk, environment)
        said.append((what, done.returncode, done.stdout + done.stderr))

    few, many = (
        _records(disk.parent / "few", 40, "word "),
        _records(disk.parent / "many", 200, LONG),
    )
    spanlab("import", "import", few, "--dataset", "d")
    spanlab("annotate some", "annotate", "d", "--detector", "offline", "--limit", "2")
    filler = disk / "filler"
    free = shutil.disk_usage(disk).free
    filler.write_bytes(bytes(free - 100_000))
    spanlab("annotate", "annotate", "d", "--detector", "offline")
    spanlab("jobs", "jobs", "list")
    os.truncate(filler, free // 2)
    spanlab("import too much", "import", many, "--dataset", "d")
    spanlab("read", "datasets")
    _fill(disk / "more")
    spanlab("import another", "import", few, "--dataset", "e")
    filler.unlink()
    spanlab("annotate with space", "annotate", "d", "--detector", "offline")
    spanlab("import with space", "import", few, "--dataset", "e")
    spanlab("read at the end", "datasets")
    sys.stdout.write(json.dumps(said))


def _fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def _records(path: Path, count: int, answer: str) -> str:
    lines = (json.dumps({"id": f"{path.name}{n}", "answer": answer}) for n in range(count))
    path.write_text("\n".join(lines))
    return str(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Files as they come: packed, marked, broken, missing; and files that are written whole."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from spanlab.formats import write
from spanlab.formats.files import replacing
from spanlab.schema import Item, Record

LINE = b'{"id":"a","answer":"x"}\n'


RECORD = Record(item=Item(id="b", answer="y"))


COPY = """
import resource, sys
from pathlib import Path
from spanlab.formats import read, write
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = write(read(Path(sys.argv[1])), Path(sys.argv[2]))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_long_file_passes_through_little_memory(tmp_path: Path) -> None:
    """50,000 lines of 60 MB need less than 10 MB (ru_maxrss is in KiB)."""
    path = tmp_path / "large.jsonl"
    answer = "All of this is held once. " * 46
    with path.open("w") as stream:
        for index in range(50_000):
            stream.write(json.dumps({"id": f"item-{index}", "answer": answer}) + "\n")
    assert path.stat().st_size > 60_000_000
    done = subprocess.run(
        [sys.executable, "-c", COPY, str(path), str(tmp_path / "again.jsonl")],
        capture_output=True,
        text=True,
        check=True,
    )
    count, grown = map(int, done.stdout.split())
    assert count == 50_000
    assert grown < 10_000


def test_what_a_killed_writer_left_is_gone_after_the_next_write(tmp_path: Path) -> None:
    target = tmp_path / "out[1].jsonl"
    killed = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from spanlab.formats.files import replacing\n"
        f"with replacing(Path({str(target)!r})) as stream:\n"
        "    stream.write(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", killed], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.suffix for path in tmp_path.iterdir()] == [".tmp"]
    with replacing(target) as first:  # a writer that lives keeps its file
        write([RECORD], target)
        first.write(LINE)
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == LINE

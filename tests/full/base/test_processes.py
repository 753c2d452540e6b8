"""Processes that share out work, and Ctrl+C while they start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from spanlab.base.processes import ProcessPool, uninterrupted


def test_ctrl_c_waits_until_a_process_was_told_what_to_do() -> None:
    """Whichever thread of a process hears it: one that draws a progress bar, say."""
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    done = []
    try:
        with pytest.raises(KeyboardInterrupt), uninterrupted():
            assert other.ident is not None
            signal.pthread_kill(other.ident, signal.SIGINT)
            time.sleep(0.05)
            done.append("started")
    finally:
        over.set()
        other.join()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_processes_do_not_hear_ctrl_c() -> None:
    with ProcessPool(1) as pool:
        assert pool.submit(signal.getsignal, signal.SIGINT).result(60) is signal.SIG_IGN
        assert pool.submit(divmod, 7, 2).result(60) == (3, 1)


def test_processes_hold_none_of_the_standard_streams() -> None:
    with ProcessPool(1) as pool:
        held = [
            pool.submit(os.path.realpath, f"/proc/self/fd/{stream}").result(60)
            for stream in range(3)
        ]
    assert held == [os.devnull] * 3


def test_a_process_that_is_ended_is_replaced_for_what_comes_next() -> None:
    with ProcessPool(1) as pool:
        with pytest.raises(BrokenProcessPool):
            pool.submit(os._exit, 3).result(60)
        assert pool.submit(divmod, 7, 2).result(60) == (3, 1)


def test_a_script_without_a_main_guard_has_processes_annotate(tmp_path: Path) -> None:
    """Also one that is read from standard input; neither is run a second time."""
    for ending in (run_script(BY_NAME, tmp_path), run_script(BY_NAME, tmp_path, stdin=True)):
        assert ending.returncode == 0, ending.stderr
        assert ending.stdout.splitlines() == ["begun", '["done", "done"]']
        assert ending.stderr == ""


@pytest.mark.parametrize("guard", ["if True:", 'if __name__ == "__main__":'])
def test_a_detector_of_a_script_works_in_processes_where_they_can_import_it(
    guard: str, tmp_path: Path
) -> None:
    ending = run_script(OWN.replace("GUARD", guard), tmp_path)
    if "__main__" in guard:
        assert ending.returncode == 0, ending.stderr
        assert ending.stdout == '["done", "done"]\n'
    else:
        assert ending.returncode == 1
        assert ending.stdout == ""
        assert "ConfigurationError: a process that annotates items has ended" in ending.stderr
        assert "UsageError: what this script does must stand under" in ending.stderr


def run_script(
    script: str, where: Path, *, stdin: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a script of a user's from a file, or as a shell pipes it into Python."""
    (where / "script.py").write_text(script, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-" if stdin else "script.py"],
        cwd=where,
        env=os.environ | {"SPANLAB_HOME": str(where / "home")},
        input=script if stdin else None,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


RECORDS = """
import json
import spanlab
from spanlab.schema import Annotation, Item, AnnotatorKind, Record, Status

records = [Record(item=Item(id=name, lang="en", answer="It rained.")) for name in ("a", "b")]
"""

BY_NAME = f"""{RECORDS}
print("begun")
records = spanlab.annotate(records, "offline", concurrency=2)
print(json.dumps([record.annotations[0].status for record in records]))
"""

OWN = f"""{RECORDS}
class Mine:
    name = "mine"

    def annotate(self, item):
        return Annotation(annotator="mine", kind=AnnotatorKind.DETECTOR, status=Status.DONE)

GUARD
    records = spanlab.annotate(records, Mine(), concurrency=2)
    print(json.dumps([record.annotations[0].status for record in records]))
"""

"""A test run ends and says what happened, whatever its workers die of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SUPPORT = Path(__file__).resolve().parents[1] / "support"
_FINE = "def test_a(): pass\ndef test_b(): pass\n"
_DIES = "import os\ndef test_a(): pass\ndef test_b(): os._exit(1)\ndef test_c(): {}\n"
_HANGS = "import threading\ndef test_a(): threading.Event().wait()\n"


def _run(folder: Path, *options: str, **files: str) -> str:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(_SUPPORT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("dies", ["1", "4"])
def test_what_a_dead_worker_had_before_it_is_run_by_others(dies: str, tmp_path: Path) -> None:
    files = {str(n): _FINE for n in range(1, 5)} | {dies: _DIES.format("os._exit(1)")}
    said = _run(tmp_path, "-p", "xdist", "-p", "scheduling", **files)
    assert "2 failed, 7 passed" in said
    assert f"crashed while running 'test_{dies}.py::test_b'" in said
    assert f"crashed while running 'test_{dies}.py::test_c'" in said


def test_a_run_of_which_nothing_is_heard_ends_and_names_what_hangs(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import scheduling\nscheduling._SILENCE = 3.0\n")
    said = _run(tmp_path, "-p", "xdist", "-p", "scheduling", fine=_FINE, hangs=_HANGS)
    assert "no test began or ended for 3 s; begun: test_hangs.py::test_a" in said

"""Tests that forked workers run: all of them, each once, and none is lost with its worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import forked_workers
import pytest

TESTS = """
import os
import pytest

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    yield tmp_path_factory.mktemp("shared")
    with open(os.environ["LOG"], "a") as log:
        log.write("shared ends\\n")

@pytest.mark.parametrize("number", range(9))
def test_it(number, shared, tmp_path):
    print(f"said by {number}")
    with open(os.environ["LOG"], "a") as log:
        log.write(f"{number}\\n")
    assert number != 4
    if number == 7:
        os._exit(3)
"""


@pytest.mark.parametrize("workers", [1, 3])
def test_each_runs_once_and_what_dies_with_its_worker_has_failed(
    workers: int, tmp_path: Path
) -> None:
    (tmp_path / "test_one.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "test_two.py").write_text(TESTS.replace("os._exit(3)", "pass"), encoding="utf-8")
    log = tmp_path / "log"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "forked_workers"]
    command += ["--workers", str(workers), "--rootdir", str(tmp_path), str(tmp_path)]
    support = str(Path(forked_workers.__file__).parent)
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": support, "LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = log.read_text().splitlines()
    runs = [line for line in said if line.isdigit()]
    if workers == 1:
        assert "no worker is left" in done.stdout
        assert done.returncode == 2
        return
    assert sorted(runs) == sorted(2 * "012345678")
    assert "3 failed, 15 passed" in done.stdout
    assert "the worker that ran this test has ended" in done.stdout
    assert "said by 4" in done.stdout
    assert said.count("shared ends") >= 1
    assert done.returncode == 1

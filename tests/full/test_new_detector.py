"""`make new-detector` in a copy of the repository: what it writes passes checks and its test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import new_detector
import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("spanlab", "optimizers", "tests", "data")
FILES = ("pyproject.toml", "Makefile", "README.md", "app.py", "compose.yaml")


# Whether the guide lists its page, and what is generated there is as `make guide` writes it.
PAGE = """
import sys
sys.path.insert(0, "tests/support")
from guide_blocks import TOPICS, text_of
from guide_parts import made_anew
page = "detector-odd-words"
print(page in TOPICS, made_anew(text_of(page)) == text_of(page))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignore = shutil.ignore_patterns("*.png", "*.webp", "browser", "bench_*")  # not what is compiled
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(copy: Path, *words: str) -> str:
    environment = {name: os.environ[name] for name in os.environ if "PYTEST" not in name}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=copy,
        env=environment | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_new_detector_passes_the_checks_and_its_test(copy: Path) -> None:
    written = run(copy, "tests/support/new_detector.py", "odd-words").splitlines()
    assert "spanlab/systems/odd_words/detector.py" in written
    python = [file for file in written if file.endswith(".py")]
    run(copy, "-m", "ruff", "check", *python)
    run(copy, "-m", "pytest", "tests/systems/odd_words")
    assert run(copy, "-c", PAGE) == "True True\n"


@pytest.mark.parametrize("name", ["Odd", "odd words", "../odd", "odd--words", "x" * 40, ""])
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="expected at most 24 small letters"):
        new_detector.write(name, tmp_path)


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(ValueError, match="spanlab/systems/safe has one of this name"):
        new_detector.write("safe")

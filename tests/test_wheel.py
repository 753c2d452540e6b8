"""The wheel is whole: what people install works without the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("spanlab", "optimizers")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network from a copy of what is in the repository."""
    tree = tmp_path_factory.mktemp("tree")
    for name in tracked():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", tree / "wheels")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", *options, tree], tree)
    (built,) = (tree / "wheels").glob("*.whl")
    return built


def run(command: list[str | Path], where: Path, **environment: str) -> str:
    """Run a command, which must succeed, and return what it printed."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SPANLAB_")}
    done = subprocess.run(
        command,
        cwd=where,
        env=ours | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tracked(*folders: str) -> list[str]:
    """Return the paths of the files in the repository."""
    command: list[str | Path] = ["git", "-c", "core.quotepath=off", "ls-files", "--", *folders]
    return [name for name in run(command, ROOT).splitlines() if (ROOT / name).is_file()]


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    documents = {name for name in tracked(*SHIPPED) if name.endswith(".md")}
    assert set(tracked(*SHIPPED)) - documents - names == set()
    assert {"spanlab/py.typed", "spanlab/samples.jsonl"} <= names


def test_the_demo_runs_from_the_wheel_in_an_empty_directory(wheel: Path, tmp_path: Path) -> None:
    target, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    options = ("--no-deps", "--no-index", "--no-compile", "--target", target)
    run([sys.executable, "-m", "pip", "install", "--quiet", *options, wheel], tmp_path)
    where = run([sys.executable, "-c", WHERE], empty, PYTHONPATH=str(target))
    assert where.strip() == str(target / "spanlab")
    command: list[str | Path] = [sys.executable, target / "bin" / "spanlab"]
    run([*command, "demo", "--prepare-only"], empty, PYTHONPATH=str(target))
    listed = run([*command, "datasets"], empty, PYTHONPATH=str(target))
    assert "samples" in listed
    assert "67" in listed
    assert (empty / ".spanlab" / "spanlab.db").is_file()


WHERE = "import pathlib, spanlab; print(pathlib.Path(spanlab.__file__).parent)"

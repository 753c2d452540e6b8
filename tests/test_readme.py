"""What the README shows is run as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run_here
from gold_answers import GoldAnswers, better_when_asked

from spanlab.detection.entry import entry_of
from spanlab.detection.estimate import typical_cost
from spanlab.formats import read
from spanlab.testing import ModelServer

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A directory with a third of the samples, as in a clone."""
    (tmp_path / "data").mkdir()
    lines = (ROOT / "data" / "samples.jsonl").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "data" / "samples.jsonl").write_text("".join(lines[::3]), "utf-8")
    return tmp_path


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines()]


def is_ours(command: str) -> bool:
    """Whether it is spanlab that a command starts, maybe with environment variables."""
    words = (word for word in command.split() if not re.match(r"[A-Z_]+=", word))
    return next(words) == "spanlab"


def test_every_spanlab_command_runs_in_the_order_given(
    clone: Path, model_server: ModelServer, samples: Path
) -> None:
    model_server.script(GoldAnswers(read(samples), noise=better_when_asked()))
    ours = [command for command in commands() if is_ours(command)]
    assert len(ours) >= 10
    for command in ours:
        environment = os.environ | {"SPANLAB_HOME": str(clone / "home")}
        words = shlex.split(command, comments=True)
        done = run_here(words[words.index("spanlab") + 1 :], clone, environment)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_every_other_command_is_a_target_of_make() -> None:
    others = [command for command in commands() if not is_ours(command)]
    assert others == ["make run", "make test"]


def test_it_is_one_page() -> None:
    assert len(README.splitlines()) <= 150


def test_the_python_examples_run(clone: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks("python"))],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "IoU" in done.stdout
    assert (clone / "annotated.csv").is_file()


def test_its_table_says_what_detectors_cost() -> None:
    """The numbers of calls are those that the page Detect shows."""
    rows = re.findall(r"\[`([\w-]+)`\]\([^|]*\|[^|]*\| (.+) \|$", README, re.MULTILINE)
    assert len(rows) == 10
    for name, cost in rows:
        calls = re.search(r"up to (\d+) model call", typical_cost(entry_of(name)))
        assert cost.partition(" ")[0] == (calls[1] if calls else "no"), name


def test_every_file_and_page_that_it_names_is_there() -> None:
    found = re.findall(r"\]\(([^)]+)\)", README) + re.findall(r'src(?:set)?="([^"]+)', README)
    assert len(found) > 20
    for path in found:
        assert (ROOT / path).is_file(), path


def test_every_promise_of_security_is_kept_by_tests_that_are_there() -> None:
    page = (ROOT / "spanlab/guide/security.md").read_text(encoding="utf-8")
    _, _, promises = page.partition("## What is not trusted")
    promises, _, _ = promises.partition("## Limits of the protection")
    entries = promises.split("\n- **")[1:]
    assert len(entries) > 35
    for entry in entries:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", entry)
        assert tests, f"no test keeps the promise: {entry[:60]}"
        for file, name in tests:
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)


def test_the_layout_names_only_what_is_there() -> None:
    pages = ("README.md", "guide/house.md", "guide/adding.md", "guide/security.md")
    layout = "".join((ROOT / "spanlab" / page).read_text(encoding="utf-8") for page in pages)
    names = set(re.findall(r"`?\b((?:spanlab|optimizers|tests)/[\w/]*(?:\.\w+)?|app\.py)", layout))
    packages = (
        r"app|base|bench|campaigns|cli|comparison|data|detection|formats|integrations|jobs|measure"
        r"|memory|models|networks|oplog|output|people|review|schema|scoring|search|storage|systems"
        r"|text|tools|ui"
    )
    inside = set(re.findall(rf"`((?:{packages})/[\w/]*(?:\.py)?)[`:]", layout))
    assert len(names) >= 15
    assert len(inside) >= 15
    for name in names | {f"spanlab/{name}" for name in inside}:
        assert (ROOT / name).exists(), name

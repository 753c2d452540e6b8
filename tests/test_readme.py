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

from spanlab.datasets import read
from spanlab.testing import ModelServer, ScriptedReply

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A directory with a third of the samples and other data as in a clone, and some pages."""
    (tmp_path / "data").mkdir()
    for name, step in (("samples", 3), ("questions", 1), ("claims", 1)):
        lines = (ROOT / "data" / f"{name}.jsonl").read_text("utf-8").splitlines(keepends=True)
        (tmp_path / "data" / f"{name}.jsonl").write_text("".join(lines[::step]), "utf-8")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "oslo.txt").write_text("Oslo is the capital of Norway.")
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
    """Whatever address of an endpoint a command names, the scripted server is there."""
    says = GoldAnswers(read(samples), noise=better_when_asked())
    found = ScriptedReply(body={"results": [{"title": "Oslo", "content": "So it is."}]})
    model_server.script(lambda ask: found if ask.path.startswith("/v1/search") else says(ask))
    searching = {"SPANLAB_SEARXNG_URL": f"{model_server.url}/search"}
    ours = [command for command in commands() if is_ours(command)]
    assert len(ours) >= 20
    for command in ours:
        environment = os.environ | {"SPANLAB_HOME": str(clone / "home")} | searching
        words = shlex.split(command, comments=True)
        done = run_here(words[words.index("spanlab") + 1 :], clone, environment)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    asked = {str(ask.body.get("model")) for ask in model_server.requests}
    assert {"llama3.3", "Qwen/Qwen3-32B", "openai/gpt-4o"} <= asked


def test_every_other_command_is_a_target_of_make() -> None:
    others = [command for command in commands() if not is_ours(command)]
    assert others == ["make run", "make test"]


def test_the_python_examples_run(clone: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks("python"))],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "macro" in done.stdout
    assert "('source', 'summary', 'answer')" in done.stdout
    assert (clone / "annotated.csv").is_file()


def test_every_file_and_page_that_it_names_is_there() -> None:
    for path in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file(), path
    for page in re.findall(
        r"^\| (Review|Datasets|Detect|Optimise|Jobs|Compare|Export) \|", README, re.MULTILINE
    ):
        assert (ROOT / "spanlab" / "ui" / "views" / f"{page.lower()}.py").is_file()


def test_the_layout_names_only_what_is_there() -> None:
    layout = (ROOT / "spanlab" / "README.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`?\b((?:spanlab|optimizers|tests)/[\w/]*(?:\.\w+)?|app\.py)", layout))
    packages = r"cli|ui|jobs|workflows|detectors|retrievers|datasets|storage|oplog|programs"
    inside = set(re.findall(rf"`((?:{packages})(?:/[\w/]*)?(?:\.py)?)[`:]", layout))
    assert len(names) >= 15
    assert len(inside) >= 15
    for name in names | {f"spanlab/{name}" for name in inside}:
        assert (ROOT / name).exists(), name

"""Datasets go to Hugging Face's Hub and come from it: a server here speaks its protocol."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from dataset_hub import TOKEN, DatasetHub, serving
from forks import run_code

from spanlab.formats import read

Run = Callable[..., subprocess.CompletedProcess[str]]
ROWS = [{"question": f"{n}?", "response": "Paris has 3 million.", "context": "2.1"} for n in "ab"]
LINES = "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()


@pytest.fixture
def hub() -> Iterator[DatasetHub]:
    public = {
        "README.md": b"# Answers",
        "data/test.jsonl": LINES,
        "data/train.jsonl": LINES + b"\n",
    }
    with serving(DatasetHub({"org/answers": public, "org/pictures": {"a.png": b""}})) as hub:
        yield hub


@pytest.fixture
def run(spanlab: Run, hub: DatasetHub, tmp_path: Path) -> Run:
    """Run `spanlab` in a process of its own, as the Hub's client reads variables once."""
    home = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": TOKEN}
    return partial(spanlab, stdout=subprocess.PIPE, **home)


def test_what_is_pushed_comes_back_with_all_annotations(
    run: Run, hub: DatasetHub, items: Path, tmp_path: Path
) -> None:
    asks = tmp_path / "asks.jsonl"
    asks.write_text('{"asks": {"questions": [{"name": "fluent", "options": ["yes", "no"]}]}}\n')
    asks.write_bytes(asks.read_bytes() + items.read_bytes())
    assert run("import", asks, "--dataset", "mine").returncode == 0
    assert run("annotate", "mine", "--detector", "offline").returncode == 0
    for _ in range(2):  # a repository that is there gets another commit
        done = run("push", "mine", "org/mine")
        assert done.returncode == 0, done.stderr
    assert f"{hub.url}/datasets/org/mine" in done.stderr
    assert "left out what the dataset asks (fluent)" in done.stderr
    assert "org/mine" in hub.private
    assert set(hub.files["org/mine"]) == {"README.md", "data/train.jsonl"}
    assert b"| offline | detector | 3 |" in hub.files["org/mine"]["README.md"]
    done = run("annotate", "hf://org/mine", "--detector", "offline", "-o", "back.jsonl")
    assert done.returncode == 0, done.stderr
    back = list(read(tmp_path / "back.jsonl"))
    assert [record.item for record in back] == [record.item for record in read(items)]
    spans = [[a.spans for a in record.annotations if a.annotator == "gold"] for record in back]
    assert [[len(each) for each in record] for record in spans] == [[1], [0], [1]]


def test_datasets_of_the_hub_are_imported_whole_or_in_part_and_fetched_once(
    run: Run, hub: DatasetHub
) -> None:
    done = run("import", "hf://org/answers", "--dataset", "whole", HF_TOKEN="")
    assert done.returncode == 0, done.stderr
    assert "imported 4 items" in done.stderr
    assert run("import", "hf://datasets/org/answers@main/data/test.jsonl", "--dataset", "part")
    assert hub.fetched == ["data/test.jsonl", "data/train.jsonl"]
    refused = run("import", "hf://org/answers/other", "--dataset", "none")
    assert refused.returncode == 1
    assert "hf://org/answers/other: the dataset has no file that can be read" in refused.stderr
    assert "no file that can be read" in run("import", "hf://org/pictures", "--dataset", "n").stderr


def test_a_refusal_says_what_is_wrong_and_shows_no_token(
    run: Run, hub: DatasetHub, items: Path
) -> None:
    assert run("import", items, "--dataset", "mine").returncode == 0
    wrong = {"HF_TOKEN": "hf_some-other-token"}
    for command, status in (
        (("push", "mine", "org/mine"), 1),
        (("push", "mine", "mine"), 2),
        (("push", "nobody", "org/mine"), 1),
        (("import", "hf://org/nothing", "--dataset", "x"), 1),
        (("import", "hf://nothing", "--dataset", "x"), 2),
    ):
        done = run(*command, **wrong)
        assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
        assert wrong["HF_TOKEN"] not in done.stderr
    assert "org/mine" not in hub.files
    unreachable = run("import", "hf://org/answers", "--dataset", "x", HF_ENDPOINT="http://[::1]:9")
    assert unreachable.returncode == 1, unreachable.stderr


def test_a_script_loads_them(hub: DatasetHub, tmp_path: Path) -> None:
    hub.files["org/table"] = {"a/0.csv": b"question,answer\n?,Yes.\n", "a/1.json": b"[]"}
    code = "import spanlab; print([r.item.answer for r in spanlab.load('hf://org/table')])"
    done = run_code(code, {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}, tmp_path)
    assert done.stdout == "['Yes.']\n", done.stderr

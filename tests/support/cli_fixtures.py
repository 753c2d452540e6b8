"""The real `spanlab` command in a directory of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from commands import run_here
from forks import run_forked

Run = Callable[..., subprocess.CompletedProcess[str]]
Write = Callable[..., Path]
MakeRecord = Callable[..., dict[str, object]]

QUESTION = "Where and when was the Eiffel Tower finished?"
PASSAGE = "The Eiffel Tower in Paris was finished in March 1889 for the World's Fair."


@pytest.fixture
def spanlab(tmp_path: Path) -> Run:
    """Run `spanlab ARGUMENTS…` in ``tmp_path`` with a database there.

    It runs in this process; if its standard output is a pipe, in one of its own, forked; and if
    that is a file, as somebody starts it.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SPANLAB_")
    }

    def run(
        *arguments: str | Path, stdout: int | IO[bytes] | None = None, **changes: str
    ) -> subprocess.CompletedProcess[str]:
        ours = environment | {"SPANLAB_HOME": str(tmp_path / "home")} | changes
        words = [str(each) for each in arguments]
        if stdout is None:
            return run_here(words, tmp_path, ours)
        if stdout == subprocess.PIPE:
            return run_forked(["spanlab", *words], ours, tmp_path)
        return subprocess.run(
            [Path(sys.executable).with_name("spanlab"), *words],
            cwd=tmp_path,
            env=ours,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def write() -> Write:
    """Write records to a file of JSON Lines; returns its path."""
    return _write


@pytest.fixture(scope="session")
def record() -> MakeRecord:
    """A record whose gold spans are the given words of the answer."""
    return _record


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return _write(
        tmp_path / "items.jsonl",
        _record(1, "The Eiffel Tower in Paris was finished in March 1925.", "1925"),
        _record(2, "The Eiffel Tower in Paris was finished in March 1889."),
        _record(3, "The Eiffel Tower in Lisbon was finished in March 1889.", "Lisbon"),
    )


def _write(path: Path, *records: dict[str, object]) -> Path:
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _record(number: int, answer: str, *wrong: str, **more: object) -> dict[str, object]:
    """A record whose gold spans are the given words of the answer."""
    spans = [
        {
            "start": answer.index(word),
            "end": answer.index(word) + len(word),
            "text": word,
            "prob": 1,
        }
        for word in wrong
    ]
    gold = {"annotator": "gold", "kind": "gold", "status": "done", "spans": spans}
    return {
        "id": f"t-en-{number}",
        "lang": "en",
        "question": QUESTION,
        "answer": answer,
        "passages": [{"text": PASSAGE}],
        "annotations": [gold],
    } | more

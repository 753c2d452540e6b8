"""`spanlab index`: what people type and see."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_a_corpus_is_indexed_and_indexed_again(spanlab: Run, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"text": "One.\\n\\nTwo."}\n{"text": "Three."}\n')
    for _ in range(2):
        done = spanlab("index", "c.jsonl", "-o", "c.index")
        assert (done.returncode, done.stdout) == (0, "")
        assert "indexed 2 documents as 2 passages in c.index (fingerprint " in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.index", "c.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        pytest.param(("nowhere", "-o", "i"), 1, "spanlab: nowhere: there is no such file", id="no"),
        pytest.param(
            ("bad.jsonl", "-o", "i"), 1, "spanlab: bad.jsonl, line 1, text: the field", id="line"
        ),
        pytest.param(
            ("bad.jsonl", "-o", "."),
            2,
            "spanlab: . exists and is not an index of ours",
            id="target",
        ),
        pytest.param(("bad.jsonl",), 2, "Missing option '-o'", id="no target"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    spanlab: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    (tmp_path / "bad.jsonl").write_text('{"title": "no text"}\n')
    done = spanlab("index", *arguments)
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr

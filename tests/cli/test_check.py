"""`spanlab check`: one answer is judged at once, with the evidence."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spanlab.testing import ModelServer, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
PASSAGE = "The Eiffel Tower in Paris was finished in March 1889."
WRONG, RIGHT = (PASSAGE.replace("1889", year) for year in ("1925", "1889"))


@pytest.fixture
def passage(tmp_path: Path) -> Path:
    path = tmp_path / "eiffel.txt"
    path.write_text(PASSAGE, encoding="utf-8")
    return path


def test_what_is_wrong_is_marked_with_what_stands_instead(spanlab: Run, passage: Path) -> None:
    done = spanlab("check", WRONG, "--passage", passage, COLUMNS="200")
    assert done.returncode == 3, done.stderr
    marked, header, row = done.stdout.splitlines()
    assert marked == "The Eiffel Tower in Paris was finished in March ⟦1925⟧."
    assert header.split() == ["Text", "Probability", "Label", "Evidence"]
    assert row.startswith("1925 ")
    assert row.endswith(f"passage 1: {PASSAGE}")
    done = spanlab("check", RIGHT, "--passage", passage)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [RIGHT, "Nothing is marked."]


def test_an_answer_from_standard_input_becomes_a_record_that_import_reads(
    spanlab: Run, passage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{WRONG}\n"))
    done = spanlab("check", "--passage", passage, "--question", "When?", "--lang", "en", "--json")
    assert done.returncode == 3, done.stderr
    record = json.loads(done.stdout)
    assert (record["answer"], record["question"], record["lang"]) == (WRONG, "When?", "en")
    assert record["passages"] == [{"text": PASSAGE}]
    (annotation,) = record["annotations"]
    assert annotation["annotator"] == "offline"
    assert annotation["spans"][0]["text"] == "1925"
    (tmp_path / "checked.jsonl").write_text(done.stdout, encoding="utf-8")
    assert spanlab("import", "checked.jsonl", "--dataset", "d").returncode == 0


def test_a_model_may_judge_it(spanlab: Run, passage: Path, model_server: ModelServer) -> None:
    model_server.script(lambda ask: say_fields(parts=["Paris"]))
    environ = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    asking = ("--detector", "ucsc-extract", "--model", "scripted")
    done = spanlab("check", RIGHT, "--passage", passage, *asking, **environ)
    assert done.returncode == 3, done.stderr
    assert "in ⟦Paris⟧ was" in done.stdout
    assert model_server.count == 1
    model_server.script(lambda ask: say_fields(parts=["Rome"]))
    failed = spanlab("check", WRONG, "--passage", passage, *asking, **environ)
    assert failed.returncode == 1
    assert "ucsc-extract failed" in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("",), "there is no answer: give it in quotes, or on standard input"),
        (("An answer.", "--passage", "nowhere.txt"), "nowhere.txt"),
        (("An answer.", "--lang", "not a tag"), "lang"),
        (("An answer.", "--detector", "offline", "--detector", "ucsc"), "one --detector"),
    ],
)
def test_what_cannot_be_checked_is_refused(
    spanlab: Run, arguments: tuple[str, ...], told: str
) -> None:
    done = spanlab("check", *arguments)
    assert done.returncode in {1, 2}
    assert told in done.stderr
    assert not done.stdout

"""Annotations come together from two homes, and what is exported is read back."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spanlab as spanlab_package
from spanlab.schema import Record

Run = Callable[..., subprocess.CompletedProcess[str]]
Write = Callable[..., Path]
ANSWER = "Oslo, in Norway 🗼, has 3 million people."


def marked(text: str, prob: float = 1.0) -> dict[str, Any]:
    start = ANSWER.index(text)
    return {"start": start, "end": start + len(text), "text": text, "prob": prob}


def item(name: str, *annotations: dict[str, Any], answer: str = ANSWER) -> dict[str, Any]:
    return {
        "id": name,
        "lang": "en",
        "question": "How many people, and where?",
        "answer": answer,
        "passages": [{"text": "Oslo has 700,000 people."}, {"text": "It is in\nNorway."}],
        "meta": {"model": "m-1", "reference": "700,000, in Norway", "media": {"image": "a.png"}},
        "annotations": list(annotations),
    }


def said(name: str, *spans: dict[str, Any], kind: str = "person") -> dict[str, Any]:
    return {"annotator": name, "kind": kind, "status": "done", "spans": list(spans)}


ADA = said("Ada", marked("3 million")) | {"note": "I am\nsure", "responses": {"fluency": 4}}
GOLD = said("gold", marked("3 million", 0.25), kind="gold") | {"hard": [{"start": 20, "end": 22}]}
BEN = said("Ben", marked("3"), marked("people"))
TOOL = said("tool", marked("3 million", 0.75), kind="detector")


def exported(run: Run, folder: Path) -> list[Record]:
    done = run("export", "mine", "-o", "back.jsonl")
    assert done.returncode == 0, done.stderr
    return spanlab_package.load(folder / "back.jsonl")


def told(records: list[Record]) -> dict[str, dict[str, Any]]:
    """What each annotator says of each item: who they are, and their spans."""
    return {
        record.item.id: {
            a.annotator: (str(a.kind), [(s.start, s.end, s.text, s.prob) for s in a.spans])
            for a in record.annotations
        }
        for record in records
    }


def test_the_same_items_from_another_home_join_their_annotations(
    spanlab: Run, write: Write, tmp_path: Path
) -> None:
    ours = write(tmp_path / "ours.jsonl", item("a", ADA), item("b", ADA))
    theirs = write(tmp_path / "theirs.jsonl", item("a", BEN, TOOL), item("elsewhere", BEN))
    assert spanlab("import", ours, "--dataset", "mine").returncode == 0
    for _ in range(2):
        done = spanlab("import", theirs, "--dataset", "mine", "--join")
        assert done.returncode == 0, done.stderr
        assert "1 id 'mine' does not have: elsewhere" in done.stderr
        assert "joined 2 annotations to the items of 'mine'" in done.stderr
    records = told(exported(spanlab, tmp_path))
    assert {name: kind for name, (kind, _) in records["a"].items()} == {
        "Ada": "person",
        "Ben": "person",
        "tool": "detector",
    }
    assert list(records["b"]) == ["Ada"]


def test_other_answers_are_refused_with_their_ids_and_nothing_is_stored(
    spanlab: Run, write: Write, tmp_path: Path
) -> None:
    ours = write(tmp_path / "ours.jsonl", item("a"), item("b"))
    theirs = write(tmp_path / "theirs.jsonl", item("a", BEN), item("b", answer="Bergen."))
    assert spanlab("import", ours, "--dataset", "mine").returncode == 0
    done = spanlab("import", theirs, "--dataset", "mine", "--join")
    assert done.returncode != 0
    assert "theirs.jsonl, line 2, answer: item 'b' has another answer in the dataset" in done.stderr
    assert "found 'Bergen.'" in done.stderr
    assert told(exported(spanlab, tmp_path)) == {"a": {}, "b": {}}
    assert spanlab("import", theirs, "--dataset", "mine", "--join", "--as", "x").returncode == 2
    assert spanlab("import", theirs, "--dataset", "mine", "--kind", "person").returncode == 2


def test_verdicts_that_are_joined_are_told_in_words(
    spanlab: Run, write: Write, tmp_path: Path
) -> None:
    """What the import says of columns, and no warning of Python's with a path in it."""
    judged = tmp_path / "judged.csv"
    judged.write_text("id,answer,human\n1,Oslo.,0\n2,Bergen.,1\n")
    assert spanlab("import", str(judged), "--dataset", "mine").returncode == 0
    rule = ("--hallucinated-if", "human=0")
    again = spanlab("import", str(judged), "--dataset", "mine", *rule)
    assert again.returncode != 0 and "--join adds the annotations" in again.stderr
    done = spanlab("import", str(judged), "--dataset", "mine", *rule, "--join")
    assert done.returncode == 0, done.stderr
    assert "'human' judges whole answers: 1 hallucinated, 1 not" in done.stderr
    assert "UserWarning" not in done.stderr


def test_a_person_stays_a_person(spanlab: Run, write: Write, tmp_path: Path) -> None:
    ours = write(tmp_path / "ours.jsonl", item("a", ADA))
    theirs = write(tmp_path / "theirs.jsonl", item("a", BEN))
    assert spanlab("import", ours, "--dataset", "mine").returncode == 0
    done = spanlab("import", theirs, "--dataset", "mine", "--as", "Ben", "--kind", "person")
    assert done.returncode == 0, done.stderr
    assert told(exported(spanlab, tmp_path))["a"]["Ben"][0] == "person"


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet", "zip"])
def test_every_export_that_a_suffix_names_is_read_back(
    spanlab: Run, write: Write, tmp_path: Path, suffix: str
) -> None:
    file = write(tmp_path / "ours.jsonl", item("a", ADA, BEN, TOOL, GOLD), item("b", said("Ada")))
    assert spanlab("import", file, "--dataset", "first").returncode == 0
    done = spanlab("export", "first", "-o", f"out.{suffix}")
    assert done.returncode == 0, done.stderr
    done = spanlab("import", f"out.{suffix}", "--dataset", "mine")
    assert done.returncode == 0, done.stderr
    records = exported(spanlab, tmp_path)
    before = spanlab_package.load(file)
    for one, other in zip(records, before, strict=True):
        assert one.item == other.item
    assert told(records) == told(before)
    assert [(a.note, a.hard) for record in records for a in record.annotations] == [
        (a.note, a.hard) for record in before for a in record.annotations
    ]

"""What strangers met who had README and guide alone: messages say what is so, and what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import spanlab as library
from spanlab.base.errors import UsageError

Run = Callable[..., subprocess.CompletedProcess[str]]
DATA = Path(__file__).resolve().parents[3] / "data"
ROWS = {
    "response": ["Paris has 3 million people.", "Paris is big."],
    "label": [1, 0],
    "passages": [["Paris has 2.1 million people."]] * 2,
}


def test_what_check_lists_beside_its_marks_is_told_apart(spanlab: Run, tmp_path: Path) -> None:
    """A table of five rows under an answer with two marks was not clear."""
    source = tmp_path / "source.txt"
    source.write_text("The tower was finished in 1889, after two years.", "utf-8")
    answer = "The Eiffel Tower was finished in 1889 by Gustave Eiffel and is 400 m high."
    done = spanlab("check", answer, "--passage", source, COLUMNS="200")
    marked, header, *rows = done.stdout.splitlines()
    assert header.split()[:2] == ["Text", "Probability"]
    *rows, others = rows
    assert len(rows) == marked.count("⟦")
    assert others.startswith("Less likely, not marked: “")
    assert " %" in others


def test_a_text_in_place_of_a_file_is_told_where_it_belongs(spanlab: Run) -> None:
    done = spanlab("check", "It was built in 1925.", "--passage", "The tower was built in 1889.")
    assert done.returncode == 1
    assert "put a text into a file" in done.stderr


def test_a_command_names_its_option_for_the_language(spanlab: Run, tmp_path: Path) -> None:
    """The page has a field, so it names none."""
    file = tmp_path / "a.jsonl"
    file.write_text('{"answer": "It was built in 1889 by the firm of Gustave Eiffel."}\n', "utf-8")
    for more in ([], ["--dry-run"]):
        done = spanlab("import", file, "--dataset", "a", *more)
        assert "Guessed from the text: en. If that is wrong, name it: --lang" in (
            done.stderr + done.stdout
        )


def test_a_gate_before_any_review_says_once_that_there_is_none(spanlab: Run) -> None:
    spanlab("import", DATA / "support.jsonl", "--dataset", "bot")
    spanlab("annotate", "bot", "--detector", "offline", "--limit", "3")
    spanlab("measure", "bot", "--annotator", "offline", "--within", ".1")
    done = spanlab("gate", "bot", "--max-rate", ".1")
    assert done.returncode == 2
    assert done.stderr.lower().count("no reviews") == 1
    assert "for ± 10 points" in done.stderr


def test_a_frame_where_records_belong_is_told_how_it_becomes_records() -> None:
    frame = pd.DataFrame(ROWS)
    calls: tuple[Callable[[Any], object], ...] = (
        library.rates,
        library.agreement,
        library.vote,
        library.plot,
        library.to_pandas,
        lambda rows: library.score(rows, "offline"),
        lambda rows: library.save(rows, "never.csv"),
    )
    for call in calls:
        for rows in (frame, frame.to_dict("records")):
            with pytest.raises(UsageError, match=r"expected records, .*spanlab\.load"):
                call(rows)
    assert not Path("never.csv").exists()


def test_one_text_will_do_where_a_list_of_texts_is_meant() -> None:
    with pytest.warns(UserWarning, match="1 hallucinated, 1 not") as told:
        records = library.load(pd.DataFrame(ROWS), hallucinated_if="label=1")
    assert [warning.filename for warning in told] == [__file__]  # no line of the package
    assert [record.annotations[0].answer_hallucinated for record in records] == [True, False]


@pytest.mark.parametrize("has_passages", [True, False])
def test_a_table_says_that_passages_were_not_found(
    spanlab: Run, tmp_path: Path, has_passages: bool
) -> None:
    """The rows with other passages, or none, were missing without a word."""
    item = {"id": "val-en-1", "lang": "EN", "model_input": "Of what?", "annotations": {}}
    text = "The tower was built in 1989."
    marks = {"model_output_text": text, "hard_labels": [[23, 27]], "soft_labels": []}
    folder = tmp_path / "shared" / "mushroom"
    (folder / "val").mkdir(parents=True)
    (folder / "val" / "mushroom.en-val.v2.jsonl").write_text(json.dumps(item | marks), "utf-8")
    if has_passages:
        contexts = folder / "context" / "en-val.v2_perplexity-sonar-pro"
        contexts.mkdir(parents=True)
        (contexts / "val-en-1.context.txt").write_text("It was built in 1889.", "utf-8")
    listed = spanlab("bench", "--list", "--data", tmp_path / "shared", COLUMNS="200")
    assert ("1 file, no passages" in listed.stdout) != has_passages
    done = spanlab(
        "bench", "--data", tmp_path / "shared", "--detector", "offline", "-o", tmp_path / "table"
    )
    assert done.returncode == 0, done.stderr
    assert ("No passages were found: " in done.stdout) != has_passages
    assert "trained on these items" not in done.stdout  # what it learnt from is in no row
    shutil.rmtree(tmp_path / "table")

"""The command line as people and scripts use it, with a dataset in between."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Write = Callable[..., Path]
MakeRecord = Callable[..., dict[str, object]]


def read(path: Path) -> list[dict[str, list[dict[str, str]]]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_from_import_to_scores_through_the_database(spanlab: Run, items: Path) -> None:
    assert spanlab("import", items, "--dataset", "towers").returncode == 0
    done = spanlab("annotate", "towers", "--detector", "offline")
    assert (done.returncode, done.stdout) == (0, "")
    assert "3 items" in done.stderr

    again = spanlab("annotate", "towers", "--detector", "offline")
    assert "0 items" in again.stderr

    voted = spanlab("vote", "towers", "--annotators", "offline,gold", "--name", "both")
    assert voted.returncode == 0, voted.stderr
    exported = spanlab("export", "towers", "-o", "out.jsonl")
    assert exported.returncode == 0, exported.stderr
    records = read(items.parent / "out.jsonl")
    assert [[a["annotator"] for a in r["annotations"]] for r in records] == [
        ["gold", "offline", "both"]
    ] * 3

    scored = spanlab("score", "out.jsonl", items, "--annotator", "offline", "--json")
    figures = json.loads(scored.stdout)
    assert figures["items"]["t-en-1"]["iou"] == 1.0
    assert figures["missing"] == figures["extra"] == []


def test_export_without_output_is_data_on_stdout_and_nothing_else(
    spanlab: Run, items: Path
) -> None:
    spanlab("import", items, "--dataset", "towers")
    exported = spanlab("export", "towers")
    assert [json.loads(line)["id"] for line in exported.stdout.splitlines()] == [
        "t-en-1",
        "t-en-2",
        "t-en-3",
    ]
    assert "3 items" in exported.stderr
    assert "export" in spanlab("log").stdout


def test_export_of_everybody_as_mushroom_asks_for_one_annotator(spanlab: Run, items: Path) -> None:
    spanlab("import", items, "--dataset", "towers")
    alone = spanlab("export", "towers", "--format", "mushroom", "-o", "gold.jsonl")
    assert alone.returncode == 0, alone.stderr
    spanlab("annotate", "towers", "--detector", "offline")
    everybody = spanlab("export", "towers", "--format", "mushroom", "-o", "all.jsonl")
    assert everybody.returncode == 1
    assert "holds the labels of one annotator" in everybody.stderr
    assert "gold, offline" in everybody.stderr
    assert not (items.parent / "all.jsonl").exists()


def test_import_recognises_jsonl_whose_first_line_is_long(
    spanlab: Run, write: Write, record: MakeRecord, tmp_path: Path
) -> None:
    long = record(1, "The tower stands.", passages=[{"text": "word " * 1_000_000}])
    path = write(tmp_path / "long.jsonl", long, record(2, "It fell."))
    done = spanlab("import", path, "--dataset", "long", "--format", "auto")
    assert done.returncode == 0, done.stderr
    assert "2 items" in done.stderr


def test_import_is_all_or_nothing_and_says_where_it_is_wrong(
    spanlab: Run, items: Path, tmp_path: Path
) -> None:
    good = items.read_text(encoding="utf-8").splitlines()
    bad = good[1].replace('"id": "t-en-2"', '"id": "t-en-9"').replace('"spans": []', '"spans": 7')
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("\n".join([good[0], bad, good[2]]) + "\n", encoding="utf-8")

    strict = spanlab("import", mixed, "--dataset", "towers")
    assert strict.returncode == 1
    assert "mixed.jsonl, line 2" in strict.stderr
    assert "annotations.0.spans" in strict.stderr
    assert "Traceback" not in strict.stderr
    assert "no datasets yet" in spanlab("datasets").stdout

    lenient = spanlab("import", mixed, "--dataset", "towers", "--skip-bad")
    assert lenient.returncode == 0
    assert "2 items" in lenient.stderr
    reject = json.loads((tmp_path / "towers.rejects.jsonl").read_text(encoding="utf-8"))
    assert (reject["line"], reject["raw"]) == (2, bad)


def test_an_id_that_stands_twice_is_named_by_file_and_line(
    spanlab: Run, items: Path, tmp_path: Path, write: Write, record: MakeRecord
) -> None:
    more = write(tmp_path / "more.jsonl", record(4, "New."), record(2, "Again."), record(5, "New."))
    strict = spanlab("import", items, more, "--dataset", "towers")
    assert strict.returncode == 1
    assert f"{more}, line 2, id: an item with this id already exists" in strict.stderr
    assert "no datasets yet" in spanlab("datasets").stdout

    lenient = spanlab("import", items, more, "--dataset", "a/b", "--skip-bad")
    assert lenient.returncode == 0, lenient.stderr
    assert "imported 5 items" in lenient.stderr
    reject = json.loads((tmp_path / "a_b.rejects.jsonl").read_text(encoding="utf-8"))
    assert (reject["file"], reject["line"]) == (str(more), 2)
    assert json.loads(reject["raw"])["answer"] == "Again."

    again = spanlab("import", items, "--dataset", "a/b", "--skip-bad")
    assert "left out 3 bad records" in again.stderr
    assert again.returncode == 1
    assert "no item was imported into 'a/b': all 3 records are bad" in again.stderr


def test_rejects_that_cannot_be_written_stop_the_import(
    spanlab: Run, items: Path, tmp_path: Path
) -> None:
    with items.open("a", encoding="utf-8") as file:
        file.write("no JSON\n")
    done = spanlab("import", items, "--dataset", "towers", "--skip-bad", "--rejects", "no/r.jsonl")
    assert done.returncode == 1
    assert "no/r.jsonl: the rejects cannot be written: No such file" in done.stderr
    assert "no datasets yet" in spanlab("datasets").stdout


@pytest.mark.parametrize("arguments", [["export", "towers"], ["datasets"]])
def test_a_full_disk_is_said_in_one_line(
    spanlab: Run, items: Path, arguments: list[str], tmp_path: Path
) -> None:
    spanlab("import", items, "--dataset", "towers")
    with Path("/dev/full").open("wb") as full:
        done = spanlab(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["spanlab: standard output: No space left on device"]


def test_a_reader_that_has_seen_enough_is_no_failure(
    spanlab: Run, tmp_path: Path, write: Write, record: MakeRecord
) -> None:
    """As in `spanlab export many | head -1`."""
    write(tmp_path / "many.jsonl", *(record(number, "x" * 1000) for number in range(500)))
    spanlab("import", "many.jsonl", "--dataset", "many")
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as pipe:
        done = spanlab("export", "many", stdout=pipe)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        pytest.param(["annotate", "nowhere", "--detector", "offline"], 1, "nowhere", id="dataset"),
        pytest.param(["annotate", "no.jsonl", "--detector", "offline"], 1, "no.jsonl", id="file"),
        pytest.param(["annotate", "items.jsonl", "--detector", "ofline"], 2, "offline", id="typo"),
        pytest.param(["export", "nowhere"], 1, "nowhere", id="export"),
        pytest.param(["score", "items.jsonl"], 2, "PRED and GOLD", id="one-side"),
        pytest.param(["import", "items.jsonl"], 2, "--dataset", id="missing-option"),
        pytest.param(["vote", "towers"], 2, "--annotators", id="no-voters"),
        pytest.param(
            ["vote", "towers", "--annotators", "a", "-o", "x.jsonl"], 2, "spanlab export towers",
            id="vote-output",
        ),
        pytest.param(
            ["vote", "items.jsonl", "--annotators", "a", "--gold-annotators"], 2, "not both",
            id="two-electorates",
        ),
        pytest.param(
            ["vote", "items.jsonl", "--gold-annotators", "--name", ""], 2, "'' is not a valid name",
            id="vote-without-a-name",
        ),
        pytest.param(
            ["vote", "towers", "--annotators", "a", "--name", "\n"], 2, "is not a valid name",
            id="vote-with-a-control-character",
        ),
        pytest.param(
            ["vote", "items.jsonl", "--gold-annotators", "--name", "gold"], 2,
            "a gold called 'gold', which a vote would replace", id="vote-over-gold",
        ),
        pytest.param(
            ["import", "items.jsonl", "--dataset", "d", "--column", "x"], 2, "field=column",
            id="column",
        ),
        pytest.param(
            ["import", "items.jsonl", "--dataset", "d", "--column", "id=key"], 2,
            "items.jsonl is spanlab, which has no columns to map; labelstudio, json, csv",
            id="column-of-no-table",
        ),
    ],
)  # fmt: skip
def test_exit_status_tells_wrong_input_from_wrong_usage(
    spanlab: Run, items: Path, arguments: list[str], status: int, message: str
) -> None:
    done = spanlab(*arguments)
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


_SLOW = {"streamlit", "pandas", "spacy", "numpy", "sqlalchemy", "dspy", "rich"}


@pytest.mark.parametrize(
    ("work", "unused"),
    [
        ("from spanlab.cli.app import app; app(['--help'], standalone_mode=False)", _SLOW),
        ("import spanlab.detection.commands", _SLOW),  # of files: without the database
        (  # whose formats come from rooms of detectors, too
            "from spanlab.formats import formats; formats()",
            _SLOW | {"spanlab.detection", "spanlab.models", "spanlab.search"},
        ),
    ],
)
def test_nothing_that_is_slow_is_loaded_before_it_is_asked_for(work: str, unused: set[str]) -> None:
    code = f"import sys; {work}; print(sorted({unused} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "command", ["import", "annotate", "vote", "score", "export", "serve", "demo", "datasets"]
)
def test_every_command_teaches(spanlab: Run, command: str) -> None:
    """By what it is for and with a line to copy."""
    assert (
        f"spanlab {command}"
        in spanlab(command, "--help").stdout.split("Options")[0].split("\n", 1)[1]
    )


def test_the_version_is_told_by_command_and_module(spanlab: Run) -> None:
    assert spanlab("--version").stdout.strip() == version("spanlab")
    for words in (
        ["-m", "spanlab", "--version"],
        ["-c", "import spanlab; print(spanlab.__version__)"],
    ):
        told = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
        assert told.stdout.strip() == version("spanlab")
    usage = subprocess.run(
        [sys.executable, "-m", "spanlab", "nonsense"], capture_output=True, text=True, check=False
    )
    assert usage.returncode == 2
    assert "Usage: spanlab [OPTIONS]" in usage.stderr


def test_a_shell_completes_commands_and_options(spanlab: Run) -> None:
    """With what ``spanlab --install-completion`` adds to its settings."""
    assert "--install-completion" in spanlab("--help").stdout
    for typed, word, offered in (
        ("spanlab ann", 1, ["annotate", "annotators"]),
        ("spanlab export --form", 2, ["--format"]),
    ):
        asked = {"_SPANLAB_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(word)}
        assert spanlab(stdout=subprocess.PIPE, **asked).stdout.split() == offered


def test_a_dash_as_output_is_standard_output(spanlab: Run, items: Path, tmp_path: Path) -> None:
    spanlab("import", items, "--dataset", "towers")
    exported = spanlab("export", "towers", "-o", "-")
    assert exported.returncode == 0, exported.stderr
    assert len(exported.stdout.splitlines()) == 3
    assert exported.stderr.splitlines()[-1] == "wrote 3 items of 'towers', labels of: gold"
    assert not (tmp_path / "-").exists()


def test_when_every_record_is_wrong_nothing_is_imported(
    spanlab: Run, tmp_path: Path, write: Write
) -> None:
    bad = write(tmp_path / "bad.jsonl", {"id": "a", "answer": 7}, {"id": "b", "answer": 8})
    done = spanlab("import", bad, "--dataset", "towers", "--skip-bad")
    assert done.returncode == 1
    assert "left out 2 bad records; see towers.rejects.jsonl" in done.stderr
    assert "no record can be imported: 2 of 2 are wrong" in done.stderr
    assert len(read(tmp_path / "towers.rejects.jsonl")) == 2
    assert "no datasets yet" in spanlab("datasets").stdout


def test_one_item_is_not_items(
    spanlab: Run, tmp_path: Path, write: Write, record: MakeRecord
) -> None:
    one = write(tmp_path / "one.jsonl", record(1, "Yes."))
    assert "imported 1 item into 'one'" in spanlab("import", one, "--dataset", "one").stderr
    assert "wrote 1 item of 'one'" in spanlab("export", "one").stderr


def test_the_settings_of_a_dataset_are_set_by_command(
    spanlab: Run, items: Path, tmp_path: Path
) -> None:
    spanlab("import", items, "--dataset", "towers")
    assert "undecided suggestions: rejected" in spanlab("datasets").stdout
    done = spanlab("datasets", "towers", "--undecided", "likely")
    assert "undecided suggestions: likely" in done.stdout
    assert "people per item: any number" in done.stdout
    people = ("--assign", "Ada", "--assign", "Ben", "--assign", "Cleo")
    done = spanlab("datasets", "towers", "--overlap", "2", *people)
    assert "people per item: 2; assigned to: Ada, Ben, Cleo" in done.stdout
    shown = spanlab("campaign", "towers").stdout
    assert "2 people per item, assigned to Ada, Ben and Cleo: 0 of" in shown
    assert re.search(r"^Ben +– +2 +0 +2 ", shown, re.MULTILINE)
    nobody = spanlab("datasets", "towers", "--overlap", "0")
    assert "say how many people finish each item" in nobody.stderr
    done = spanlab("datasets", "towers", "--assign", "")
    guide = tmp_path / "guide.md"
    guide.write_text("Mark names.", encoding="utf-8")
    done = spanlab("datasets", "towers", "--labels", "ragtruth", "--guidelines", str(guide))
    assert "likely; labels: 4; people per item: 2; guidelines: version 1" in done.stdout
    done = spanlab("datasets", "towers", "--labels", "citations", "--guidelines", "citations")
    assert "labels: 6; people per item: 2; guidelines: version 2" in done.stdout
    unknown = spanlab("datasets", "towers", "--labels", "mine")
    assert "no label set named 'mine'; available: spanlab, common" in unknown.stderr
    assert "labels: 2" in spanlab("datasets", "towers", "--labels", "day: a date; other: x").stdout
    twice = spanlab("datasets", "towers", "--labels", "day: a date; day: x").stderr
    assert "label" in twice
    assert "day" in twice
    asks = tmp_path / "questions.json"
    asks.write_text('{"questions": [{"name": "fluency", "kind": "scale", "high": 1}]}', "utf-8")
    wrong = spanlab("datasets", "towers", "--questions", str(asks)).stderr
    assert f"{asks}, questions.0: fluency: a scale goes up, not from 1 to 1" in wrong
    asks.write_text('{"questions": [{"name": "fluency", "kind": "scale"}]}', "utf-8")
    assert "; questions: fluency;" in spanlab("datasets", "towers", "--questions", str(asks)).stdout
    config = spanlab("datasets", "towers", "--config").stdout
    asks.write_text(config.replace('name="fluency"', 'name="style" perRegion="true"'), "utf-8")
    shown = spanlab("datasets", "towers", "--questions", str(asks)).stdout
    assert "attributes: style" in shown
    assert "questions: " not in shown
    half = spanlab("datasets", "--undecided", "ask")
    assert (half.returncode, "name it first, as in" in half.stderr) == (2, True)


def test_an_import_is_seen_before_it_is_made_and_says_what_has_no_passages(
    spanlab: Run, items: Path
) -> None:
    """A folder of Hugging Face's, with its answers inside structures."""
    table = pa.table({"out": [{"text": "In Paris."}, {"text": "\x1b[2J"}], "docs": [["a"], []]})
    folder = items.parent / "saved" / "train"
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "0000.parquet")
    columns = ("--column", "answer=out.text", "--column", "passages=docs")
    seen = spanlab("import", "saved", "--dataset", "hub", *columns, "--dry-run")
    assert seen.returncode == 0, seen.stderr
    assert "format      parquet" in seen.stdout
    assert "passages    in 1 of 2 items" in seen.stdout
    assert "answer     In Paris." in seen.stdout
    assert "\x1b" not in seen.stdout
    assert "WARNING: 1 of 2 items have no passages" in seen.stderr
    assert "no dataset named 'hub'" in spanlab("export", "hub").stderr
    done = spanlab("import", "saved", "--dataset", "hub", *columns)
    assert "imported 2 items into 'hub'" in done.stderr
    assert "WARNING: 1 of 2 items have no passages" in done.stderr


def test_an_export_says_whose_labels_go_out_and_takes_only_what_is_asked(
    spanlab: Run, items: Path
) -> None:
    spanlab("import", items, "--dataset", "towers")
    spanlab("annotate", "towers", "--detector", "offline")
    done = spanlab("export", "towers", "--annotator", "gold", "-o", "gold.csv")
    assert "labels of: gold\n" in done.stderr
    again = spanlab("import", "gold.csv", "--dataset", "again")
    assert "imported 3 items" in again.stderr
    marks = [
        [[(s["start"], s["end"]) for s in a["spans"]] for a in json.loads(line)["annotations"]]
        for name in ("again", "towers")
        for line in spanlab("export", name, "--annotator", "gold").stdout.splitlines()
    ]
    assert marks[:3] == marks[3:]
    nothing = spanlab("export", "towers", "--language", "fi", "--state", "done")
    assert (nothing.stdout, nothing.returncode) == ("", 0)
    assert "left out 3 items" in nothing.stderr
    mistyped = spanlab("export", "towers", "--label", "nosuch", "-o", "none.jsonl")
    assert mistyped.returncode == 1
    assert "dataset 'towers' has no label 'nosuch'; available: ''" in mistyped.stderr
    assert not (items.parent / "none.jsonl").exists()
    spanlab("export", "towers", "-o", "towers.html")
    report = (items.parent / "towers.html").read_text(encoding="utf-8")
    assert report.startswith("<!DOCTYPE html>")
    assert "Scores against gold" in report
    unknown = spanlab("export", "towers", "-o", "towers.pdf")
    assert unknown.returncode == 2
    assert ".parquet (parquet), .zip (huggingface), .html (report)" in unknown.stderr
    wrong = spanlab("export", "towers", "--format", "pdf")
    assert wrong.returncode == 2
    assert "these can: spanlab, mushroom" in wrong.stderr


def test_a_dataset_is_named_where_something_is_stored(spanlab: Run, items: Path) -> None:
    shown = spanlab("import", items, "--dry-run")
    assert shown.returncode == 0
    assert "# How it is read." in shown.stdout
    missing = spanlab("import", items)
    assert missing.returncode == 2
    assert "--dataset is missing: the dataset to make, or to add items to" in missing.stderr


# Modes hold for root, too, without the right to pass over them.
_AS_OTHERS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
_MOUNTED = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
_READ_ONLY = {
    "by its mode": _AS_OTHERS if os.geteuid() == 0 else [],
    "as it is mounted": ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNTED, "sh"],
}


@pytest.mark.skipif(sys.platform != "linux", reason="who is root elsewhere may write anywhere")
@pytest.mark.parametrize("how", _READ_ONLY)
def test_a_folder_that_may_only_be_read_is_named_as_the_reason(
    spanlab: Run, write: Write, record: MakeRecord, tmp_path: Path, how: str
) -> None:
    spanlab("import", write(tmp_path / "a.jsonl", record(1, "It fell.")), "--dataset", "d")
    home = tmp_path / "home"
    is_mounted = how == "as it is mounted"
    for path in () if is_mounted else (home, *home.iterdir()):
        path.chmod(path.stat().st_mode & ~0o222)
    command = [str(Path(sys.executable).with_name("spanlab")), "datasets"]
    done = subprocess.run(
        [*_READ_ONLY[how], *([home] if is_mounted else []), *command],
        env=os.environ | {"SPANLAB_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    home.chmod(0o700)
    assert done.returncode == 1
    assert "is read-only" in done.stderr
    assert "Traceback" not in done.stderr

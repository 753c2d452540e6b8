"""The command line as people and scripts use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

QUESTION = "Where and when was the Eiffel Tower finished?"
PASSAGE = "The Eiffel Tower in Paris was finished in March 1889 for the World's Fair."


def write(path: Path, *records: dict[str, object]) -> Path:
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, list[dict[str, str]]]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def record(number: int, answer: str, *wrong: str, **more: object) -> dict[str, object]:
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


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return write(
        tmp_path / "items.jsonl",
        record(1, "The Eiffel Tower in Paris was finished in March 1925.", "1925"),
        record(2, "The Eiffel Tower in Paris was finished in March 1889."),
        record(3, "The Eiffel Tower in Lisbon was finished in March 1889.", "Lisbon"),
    )


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


def test_import_is_all_or_nothing_and_says_where_it_is_wrong(
    spanlab: Run, items: Path, tmp_path: Path
) -> None:
    good = items.read_text(encoding="utf-8").splitlines()
    bad = good[1].replace('"id": "t-en-2"', '"id": "t-en-9"').replace('"spans": []', '"spans": 7')
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("\n".join([good[0], bad, good[2]]) + "\n", encoding="utf-8")

    strict = spanlab("import", mixed, "--dataset", "towers")
    assert strict.returncode == 1
    assert "mixed.jsonl:2" in strict.stderr
    assert "annotations.0.spans" in strict.stderr
    assert "Traceback" not in strict.stderr
    assert "no datasets yet" in spanlab("datasets").stdout

    lenient = spanlab("import", mixed, "--dataset", "towers", "--skip-bad")
    assert lenient.returncode == 0
    assert "2 items" in lenient.stderr
    reject = json.loads((tmp_path / "towers.rejects.jsonl").read_text(encoding="utf-8"))
    assert (reject["line"], reject["raw"]) == (2, bad)


def test_an_id_that_stands_twice_is_named_by_file_and_line(
    spanlab: Run, items: Path, tmp_path: Path
) -> None:
    more = write(tmp_path / "more.jsonl", record(4, "New."), record(2, "Again."), record(5, "New."))
    strict = spanlab("import", items, more, "--dataset", "towers")
    assert strict.returncode == 1
    assert f"{more}:2: this id stands twice" in strict.stderr
    assert "no datasets yet" in spanlab("datasets").stdout

    lenient = spanlab("import", items, more, "--dataset", "a/b", "--skip-bad")
    assert lenient.returncode == 0, lenient.stderr
    assert "imported 5 items" in lenient.stderr
    reject = json.loads((tmp_path / "a_b.rejects.jsonl").read_text(encoding="utf-8"))
    assert (reject["file"], reject["line"]) == (str(more), 2)
    assert json.loads(reject["raw"])["answer"] == "Again."

    again = spanlab("import", items, "--dataset", "a/b", "--skip-bad")
    assert "left out 3 bad records" in again.stderr


def test_rejects_that_cannot_be_written_stop_the_import(
    spanlab: Run, items: Path, tmp_path: Path
) -> None:
    with items.open("a", encoding="utf-8") as file:
        file.write("no JSON\n")
    done = spanlab("import", items, "--dataset", "towers", "--skip-bad", "--rejects", "no/r.jsonl")
    assert done.returncode == 1
    assert "no/r.jsonl: the rejects cannot be written: No such file" in done.stderr
    assert "no datasets yet" in spanlab("datasets").stdout


@pytest.mark.parametrize(
    ("stop", "seconds"),
    [
        pytest.param(signal.SIGINT, 1.5, id="Ctrl+C-while-workers-start"),
        pytest.param(signal.SIGINT, 5, id="Ctrl+C"),
        pytest.param(signal.SIGKILL, 5, id="killed"),
    ],
)
def test_workers_end_with_their_command_and_without_tracebacks(
    tmp_path: Path, stop: signal.Signals, seconds: float
) -> None:
    many = write(tmp_path / "many.jsonl", *(record(n, "It is in Rome. " * 50) for n in range(9000)))
    command = [str(Path(sys.executable).with_name("spanlab")), "annotate", str(many)]
    options = ["--detector", "offline", "--concurrency", "2", "-o", str(tmp_path / "out.jsonl")]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, start_new_session=True)
    with process:
        time.sleep(seconds)
        if stop == signal.SIGINT:
            os.killpg(process.pid, stop)  # as a terminal does
        else:
            process.kill()
        # The workers hold the pipe's other end: it closes when they are gone.
        _, said = process.communicate(timeout=20)
    assert b"Traceback" not in said
    assert not (tmp_path / "out.jsonl").exists()


def test_mushroom_in_is_mushroom_out(spanlab: Run, shared: Path) -> None:
    val = shared / "mushroom/val/mushroom.sv-val.v2.jsonl"
    contexts = shared / "mushroom/context/sv-val.v2_perplexity-sonar-pro"
    done = spanlab(
        "annotate", val, "--contexts", contexts, "--detector", "offline", "--limit", "5",
        "-o", "out.jsonl",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    scored = spanlab("score", "out.jsonl", val)
    assert scored.returncode == 0, scored.stderr
    table = scored.stdout.splitlines()
    assert "mark all" in table[0]
    assert table[1].split()[:2] == ["sv", "5"]
    assert "44 gold items have no prediction" in scored.stdout


def test_annotated_files_have_the_fields_of_a_submission(
    spanlab: Run, shared: Path, tmp_path: Path
) -> None:
    val = shared / "mushroom/val/mushroom.fi-val.v2.jsonl"
    spanlab("annotate", val, "--detector", "offline", "--limit", "2", "-o", "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [sorted(json.loads(line)) for line in lines] == [
        ["hard_labels", "id", "soft_labels"]
    ] * 2


def test_votes_of_the_annotators_that_a_file_names(
    spanlab: Run, shared: Path, tmp_path: Path
) -> None:
    val = shared / "mushroom/val/mushroom.fr-val.v2.jsonl"
    voted = spanlab("vote", val, "--gold-annotators", "--cleanup", "mushroom", "-o", "votes.jsonl")
    assert voted.returncode == 0, voted.stderr
    figures = json.loads(spanlab("score", "votes.jsonl", val, "--json").stdout)
    # All French labels follow from the raw spans by the shared task's rule.
    assert (figures["macro"]["iou"]["mean"], figures["macro"]["corr"]["mean"]) == (1.0, 1.0)


def test_items_that_nobody_can_vote_on_are_counted(spanlab: Run, items: Path) -> None:
    voted = spanlab("vote", items, "--gold-annotators", "-o", "votes.jsonl")
    assert voted.returncode == 0
    assert "3 items have no vote: no person has finished them" in voted.stderr


def test_several_files_on_both_sides_of_score(spanlab: Run, shared: Path) -> None:
    predictions = sorted((shared / "mushroom/golden").glob("pred.*.jsonl"))
    golds = sorted((shared / "mushroom/val").glob("*.jsonl"))
    by_shell = spanlab("score", *predictions, *golds, "--json")
    by_glob = spanlab(
        "score", shared / "mushroom/golden/pred.*.jsonl", shared / "mushroom/val/*.jsonl", "--json"
    )
    assert by_shell.returncode == 0, by_shell.stderr
    assert by_shell.stdout == by_glob.stdout
    assert len(json.loads(by_glob.stdout)["items"]) == 499


def test_a_submission_is_scored_beside_a_named_annotator(spanlab: Run, items: Path) -> None:
    spanlab("import", items, "--dataset", "d")
    spanlab("annotate", "d", "--detector", "offline")
    spanlab("export", "d", "-o", "all.jsonl")
    spanlab("export", "d", "--annotator", "offline", "--format", "mushroom", "-o", "sub.jsonl")
    both = spanlab(
        "score", "all.jsonl", items, "--annotator", "offline", "--against", "sub.jsonl", "--json"
    )
    assert both.returncode == 0, both.stderr
    assert json.loads(both.stdout)["against"]["macro"]["iou"]["difference"] == 0


def test_an_annotator_that_a_file_does_not_have_is_named(spanlab: Run, items: Path) -> None:
    scored = spanlab("score", items, items, "--annotator", "frob")
    assert scored.returncode == 1
    assert "items.jsonl: there is no finished annotation by 'frob'" in scored.stderr


def test_a_second_system_is_compared_with_a_paired_test(spanlab: Run, items: Path) -> None:
    spanlab("annotate", items, "--detector", "offline", "-o", "a.jsonl")
    scored = spanlab("score", "a.jsonl", items, "--against", items)
    assert scored.returncode == 0, scored.stderr
    assert "PRED minus --against, paired" in scored.stdout


@pytest.mark.parametrize(
    "arguments", [["export", "towers"], ["datasets"], ["score", "items.jsonl", "items.jsonl"]]
)
def test_a_full_disk_is_said_in_one_line(
    spanlab: Run, items: Path, arguments: list[str], tmp_path: Path
) -> None:
    spanlab("import", items, "--dataset", "towers")
    with Path("/dev/full").open("wb") as full:
        done = spanlab(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["spanlab: standard output: No space left on device"]


def test_a_reader_that_has_seen_enough_is_no_failure(spanlab: Run, tmp_path: Path) -> None:
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
            ["vote", "items.jsonl", "--gold-annotators", "--name", ""], 2, "'' cannot name a vote",
            id="vote-without-a-name",
        ),
        pytest.param(
            ["vote", "towers", "--annotators", "a", "--name", "\n"], 2, "cannot name a vote",
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


def test_help_loads_nothing_that_is_slow() -> None:
    code = (
        "import sys; from spanlab.cli.app import app; app(['--help'], standalone_mode=False); "
        "print(sorted({'streamlit', 'pandas', 'spacy', 'numpy', 'sqlalchemy', 'rich'} "
        "& sys.modules.keys()))"
    )
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

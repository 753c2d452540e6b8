"""`spanlab bench`: detectors × datasets in one table, beside controls, and made again."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tuned_programs import tuned_program

from spanlab.base.settings import Settings
from spanlab.formats import read
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import answer_hash
from spanlab.testing import ModelRequest, ModelServer, say, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
TEXTS = ("table.md", "table.tex", "table.csv", "languages.csv", "table.html")


def figures(table: Path) -> dict[str, dict[str, str]]:
    """Return the rows of a table of one dataset, by what they are called."""
    text = (table / "table.csv").read_text(encoding="utf-8")
    return {row["System"]: row for row in csv.DictReader(text.splitlines())}


def test_a_dataset_of_the_database_is_named_as_in_all_commands(
    spanlab: Run, tmp_path: Path
) -> None:
    assert spanlab("demo", "--prepare-only").returncode == 0
    done = spanlab("bench", "samples", "--detector", "offline", "--limit", "5", "-o", "table")
    assert done.returncode == 0, done.stderr
    rows = figures(tmp_path / "table")
    assert list(rows)[:3] == ["offline", "mark everything", "mark nothing"]
    assert spanlab("bench", "--check", "table").returncode == 0
    twice = spanlab("bench", "samples", "--dataset", "samples", "--detector", "offline")
    assert "goes without --dataset" in twice.stderr
    nowhere = spanlab("bench", "nowhere", "--detector", "offline")
    assert (nowhere.returncode, "'nowhere'" in nowhere.stderr) == (1, True)


def test_a_dataset_of_verdicts_on_whole_answers_is_scored_on_answers(
    spanlab: Run, tmp_path: Path
) -> None:
    rows = [
        {
            "passages": ["Built in 1900."],
            "answer": f"Built in {year}.",
            "hallucinated": year != 1900,
        }
        for year in (1900, 1907, 1900, 1911)
    ]
    (tmp_path / "verdicts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert spanlab("import", "verdicts.jsonl", "--dataset", "verdicts").returncode == 0
    done = spanlab("bench", "verdicts", "--detector", "offline", "-o", "table")
    assert done.returncode == 0, done.stderr
    assert figures(tmp_path / "table")["offline"]["Macro F1"] == "1.0"


def test_the_samples_make_a_table_without_anything(spanlab: Run, tmp_path: Path) -> None:
    done = spanlab("bench", "--detector", "offline", "-o", "table")
    assert done.returncode == 0, done.stderr
    assert "6 cells" in done.stderr, "what it comes to is said before it begins"
    rows = figures(tmp_path / "table")
    assert list(rows) == [
        "offline",
        "mark everything",
        "mark nothing",
        "best single annotator",
        "offline: another item's passages",
        "offline: no passages",
    ]
    assert float(rows["offline"]["IoU"]) > float(rows["offline: no passages"]["IoU"])
    assert rows["offline"]["Not significantly worse"] == "yes"
    assert rows["mark nothing"]["Not significantly worse"] == "", (
        "with whom it differs from the best"
    )
    assert float(rows["mark nothing"]["p"]) < 0.05
    # Of 67 answers 17 are right, and marking nothing is right there alone.
    cell = json.loads((tmp_path / "table/cells/samples/offline.json").read_bytes())
    assert (cell["n"], cell["failed"], cell["seed"]) == (67, 0, 0)
    assert {"ar", "zh", "macro"} <= set(cell["figures"])
    assert set(cell["figures"]["macro"]["iou"]) == {"mean", "low", "high"}
    assert cell["dataset"]["licence"] == "MIT"
    languages = (tmp_path / "table/languages.csv").read_text(encoding="utf-8").splitlines()
    assert languages[0].startswith('"Dataset","System","ar","ar from","ar to",')
    page = (tmp_path / "table/table.html").read_text(encoding="utf-8")
    assert "<svg role='img'" in page, "a forest plot"
    assert "**" in (tmp_path / "table/table.md").read_text(encoding="utf-8")
    latex = (tmp_path / "table/table.tex").read_text(encoding="utf-8")
    assert r"\textbf" in latex
    body = [line for line in latex.splitlines() if not line.startswith("%")]
    assert not any(re.search(r"(?<![\w$])-[\d.]", line) for line in body), "a minus, no hyphen"
    assert any("$-$" in line for line in body)
    assert "% Compared with the best system" in latex, "what a figure means goes along as a comment"

    before = {name: (tmp_path / "table" / name).read_bytes() for name in TEXTS}
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "table/cells").rglob("*.json")}
    assert spanlab("bench", "--detector", "offline", "-o", "table").returncode == 0
    assert {name: (tmp_path / "table" / name).read_bytes() for name in TEXTS} == before
    assert {path: path.stat().st_mtime_ns for path in times} == times, "cells are left as they are"

    assert spanlab("bench", "--check", "table").returncode == 0
    predictions = tmp_path / "table/predictions/samples/offline.jsonl"
    lines = predictions.read_text(encoding="utf-8").splitlines(keepends=True)
    empty = {"id": json.loads(lines[0])["id"], "hard_labels": [], "soft_labels": []}
    predictions.write_text(json.dumps(empty) + "\n" + "".join(lines[1:]), encoding="utf-8")
    checked = spanlab("bench", "--check", "table")
    assert checked.returncode == 1
    assert "differs from the saved result" in checked.stdout


def test_what_is_missing_is_listed_with_where_it_can_be_had(spanlab: Run) -> None:
    done = spanlab("bench", "--list")
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[2:]}
    assert {"mushroom", "ragtruth", "faithbench", "averitec", "factool-qa", "bingcheck"} <= set(
        rows
    )
    assert {"factcheckbench", "hover", "hotpotqa", "2wiki", "musique", "halueval"} <= set(rows)
    assert {"psiloqa", "facts"} <= set(rows)
    assert "1 file" in rows["samples"]
    assert "missing" in rows["hover"] and "https://hover-nlp.github.io" in rows["hover"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--data", "nowhere"), "is not a folder"),
        (("--dataset", "nothing"), "no card named 'nothing'"),
        (("--dataset", "ragtruth"), "it can be had from https://github.com/ParticleMedia"),
        (("--controls", "everyone"), "controls.0"),
        (("--check", "nowhere"), "has no table of `spanlab bench`"),
        (("--events",), "--events sends the results of `spanlab annotate`"),
    ],
)
def test_what_cannot_be_run_is_refused(spanlab: Run, arguments: tuple[str, ...], told: str) -> None:
    done = spanlab("bench", *arguments)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.fixture
def card(tmp_path: Path, items: Path) -> Path:
    """A file with a card of the three items, which have one gold span or none."""
    return own_card(tmp_path / "cards.toml", items)


def own_card(path: Path, items: Path, level: str = "spans") -> Path:
    path.write_text(
        f"""[[dataset]]
name = "towers"
title = "Towers"
licence = "ours"
source = "this test"
level = "{level}"
files = ["{items.name}"]
""",
        encoding="utf-8",
    )
    return path


def test_a_plan_names_detectors_models_files_and_repeats(
    spanlab: Run, tmp_path: Path, card: Path, model_server: ModelServer
) -> None:
    wrong = "finished in March 1925"
    model_server.script(
        lambda ask: say_fields(parts=["1925"] if seed_of(ask) % 2 and wrong in text(ask) else [])
    )
    (tmp_path / "theirs.jsonl").write_text(
        '{"id": "t-en-1", "hard_labels": [[48, 52]], "soft_labels": '
        '[{"start": 48, "end": 52, "prob": 1.0}]}\n'
        '{"id": "t-en-2", "hard_labels": [], "soft_labels": []}\n',
        encoding="utf-8",
    )
    (tmp_path / "plan.toml").write_text(
        """data = ["."]
cards = ["cards.toml"]
controls = ["nothing"]
seed = 6
repeats = 2
[budget]
calls = 100
[[detector]]
name = "ucsc-extract"
as = "extract"
model_options = { temperature = 0 }
[[detector]]
name = "offline"
[[dataset]]
name = "towers"
metric = "f1"
[[predictions]]
name = "theirs"
file = "theirs.jsonl"
""",
        encoding="utf-8",
    )
    environ = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    environ["SPANLAB_MODEL"] = "scripted"
    told = spanlab("bench", "plan.toml", "-o", "table", "--dry-run", **environ)
    assert "5 cells, about 6 model calls, cost unknown" in told.stderr
    assert model_server.count == 0
    done = spanlab("bench", "plan.toml", "-o", "table", **environ)
    assert done.returncode == 0, done.stderr
    assert sorted(map(seed_of, model_server.requests)) == [6, 6, 6, 7, 7, 7]
    rows = figures(tmp_path / "table")
    assert list(rows) == ["extract", "offline", "theirs", "mark nothing"]
    # Nothing marked is right of one item; with the odd seed the wrong year is found, too.
    assert rows["extract"]["Repeats"] == ".333 to .667"
    assert (rows["theirs"]["Items"], float(rows["theirs"]["F1"])) == ("2", 1.0)
    cell = json.loads((tmp_path / "table/cells/towers/extract.1.json").read_bytes())
    assert (cell["seed"], cell["usage"]["calls"]) == (7, 3)
    assert cell["options"][0]["model.temperature"] == 0
    assert cell["models"][0]["model"] == "scripted"


def seed_of(ask: ModelRequest) -> int:
    return int(ask.body.get("seed", 0))


def text(ask: ModelRequest) -> str:
    return "\n".join(str(message["content"]) for message in ask.messages)


def test_a_spent_budget_leaves_cells_undone_until_the_command_is_run_again(
    spanlab: Run, tmp_path: Path, card: Path, model_server: ModelServer
) -> None:
    model_server.script(lambda ask: say_fields(parts=[]))
    environ = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    command = ["bench", "--data", ".", "--cards", str(card), "--dataset", "towers", "-o", "table"]
    command += ["--detector", "ucsc-extract", "--model", "scripted", "--controls", "no-passages"]
    done = spanlab(*command, "--max-calls", "4", "--concurrency", "1", **environ)
    assert done.returncode == 3
    assert "is used up: no further call was made" in done.stderr
    assert model_server.count == 4
    assert list(figures(tmp_path / "table")) == ["ucsc-extract"]
    done = spanlab(*command, **environ)
    assert done.returncode == 0, done.stderr
    assert model_server.count == 6
    assert list(figures(tmp_path / "table")) == ["ucsc-extract", "ucsc-extract: no passages"]


def test_a_detector_is_not_scored_on_what_its_prompt_was_tuned_on(
    spanlab: Run, tmp_path: Path, items: Path, card: Path, model_server: ModelServer
) -> None:
    model_server.script(lambda ask: say_fields(parts=[]))
    environ = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    answers = [record.item for record in read(items)]
    programs = ProgramRegistry(Settings(home=tmp_path / "home").programs)
    for name, taught in (("two", answers[:2]), ("all", answers)):
        learnt_from = tuple(answer_hash(item) for item in taught)
        programs.save(tuned_program(name).model_copy(update={"learnt_from": learnt_from}))
    command = ["bench", "--data", ".", "--cards", str(card), "--dataset", "towers"]
    command += ["--detector", "ucsc-extract", "--model", "scripted", "--controls", "nothing"]
    done = spanlab(*command, "-o", "two", "--program", "two", **environ)
    assert done.returncode == 0, done.stderr
    rows = figures(tmp_path / "two")
    assert (rows["ucsc-extract"]["Items"], rows["mark nothing"]["Items"]) == ("1", "3")
    assert float(rows["ucsc-extract"]["IoU"]) == 0  # of the third; it is right on the second
    assert model_server.count == 1  # nothing is asked of what is not scored
    told = (tmp_path / "two/table.md").read_text(encoding="utf-8")
    assert "ucsc-extract learnt from 2 of these answers: they are set aside" in told
    assert spanlab("bench", "--check", "two", **environ).returncode == 0
    done = spanlab(*command, "-o", "all", "--program", "all", **environ)
    assert done.returncode == 0, done.stderr
    assert figures(tmp_path / "all")["ucsc-extract"]["Items"] == "0"


def test_verdicts_on_claims_are_scored_in_the_form_of_their_task(
    spanlab: Run, tmp_path: Path
) -> None:
    rows = [
        {"claim": f"The tower {number} stands.", "label": label, "questions": []}
        for number, label in enumerate(["Refuted", "Supported", "Not Enough Evidence"])
    ]
    (tmp_path / "averitec").mkdir()
    (tmp_path / "averitec/dev.json").write_text(json.dumps(rows), encoding="utf-8")
    theirs = [
        {"claim_id": number, "claim": row["claim"], "pred_label": row["label"], "evidence": []}
        for number, row in enumerate(rows)
    ]
    (tmp_path / "theirs.json").write_text(json.dumps(theirs), encoding="utf-8")
    done = spanlab("bench", "--data", ".", "--predictions", "theirs=theirs.json", "-o", "table")
    assert done.returncode == 0, done.stderr
    table = figures(tmp_path / "table")
    assert float(table["theirs"]["Macro F1"]) == 1.0
    assert float(table["mark everything"]["Accuracy"]) == pytest.approx(1 / 3)
    written = json.loads((tmp_path / "table/predictions/averitec/theirs.json").read_bytes())
    assert [row["pred_label"] for row in written] == [row["label"] for row in rows]
    assert [row["claim_id"] for row in written] == [0, 1, 2]
    assert spanlab("bench", "--check", "table").returncode == 0


@pytest.mark.parametrize(
    ("bound", "stale"),
    [({}, ""), ({"prompts": {"offline": ["0"]}}, "out of date (other prompts); ")],
    ids=["holds", "stale"],
)
def test_a_cell_says_what_its_detector_was_certified_to_be_worth(
    spanlab: Run, tmp_path: Path, bound: dict[str, object], stale: str
) -> None:
    content: dict[str, object] = {
        "binding": {"annotator": "offline", **bound},
        "answers": {"sensitivity": {"mean": 0.9}, "specificity": {"mean": 0.75}},
        "characters": {},
    }
    sha = sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    certificate = tmp_path / "offline.json"
    certificate.write_text(json.dumps({**content, "sha256": sha}), encoding="utf-8")
    limits = ("--controls", "nothing", "--limit", "5")
    done = spanlab(
        "bench", "--detector", "offline", "--certificate", certificate, *limits, "-o", "table"
    )
    assert done.returncode == 0, done.stderr
    rows = figures(tmp_path / "table")
    assert rows["offline"]["Certificate"] == f"{stale}answers: sensitivity .900, specificity .750"
    assert rows["mark nothing"]["Certificate"] == ""


def test_a_detector_that_fails_on_every_item_has_a_row_that_says_so(
    spanlab: Run, tmp_path: Path, card: Path, model_server: ModelServer
) -> None:
    model_server.script(lambda ask: say("what?"))
    environ = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    command = ["bench", "--data", ".", "--cards", str(card), "--dataset", "towers", "-o", "table"]
    command += ["--detector", "ucsc-extract", "--model", "scripted", "--controls", "nothing"]
    done = spanlab(*command, **environ)
    assert done.returncode == 3, done.stderr
    rows = figures(tmp_path / "table")
    assert [rows["ucsc-extract"][name] for name in ("Items", "Failed", "IoU")] == ["0", "3", ""]
    assert rows["ucsc-extract"]["Not significantly worse"] == ""
    assert rows["mark nothing"]["Not significantly worse"] == "yes"
    model_server.script(lambda ask: say_fields(parts=[]))
    assert spanlab(*command, **environ).returncode == 3
    assert figures(tmp_path / "table") == rows, "what failed is left as it is, too, unless asked"
    cell = json.loads((tmp_path / "table/cells/towers/ucsc-extract.json").read_bytes())
    assert set(cell["reasons"]) == {"t-en-1", "t-en-2", "t-en-3"}
    assert all(cell["reasons"].values())
    assert spanlab(*command, "--retry-failed", **environ).returncode == 0
    assert figures(tmp_path / "table")["ucsc-extract"]["Items"] == "3"


def test_a_cell_of_other_options_is_no_cell_of_this_table(
    spanlab: Run, tmp_path: Path, card: Path, model_server: ModelServer
) -> None:
    model_server.script(lambda ask: say_fields(parts=[]))
    environ = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    command = ["bench", "--data", ".", "--cards", str(card), "--dataset", "towers", "-o", "table"]
    command += ["--detector", "ucsc-extract", "--controls", "nothing", "--concurrency", "1"]
    assert spanlab(*command, "--model", "scripted", **environ).returncode == 0
    assert list(figures(tmp_path / "table")) == ["ucsc-extract", "mark nothing"]
    done = spanlab(*command, "--model", "another", "--max-calls", "1", **environ)
    assert done.returncode == 3
    assert "table.csv" not in done.stdout
    assert "ucsc-extract" not in figures(tmp_path / "table")


def test_files_of_another_version_than_the_card_s_are_told(
    spanlab: Run, tmp_path: Path, card: Path, items: Path
) -> None:
    with card.open("a", encoding="utf-8") as stream:
        stream.write(f'[dataset.sha256]\n"{items.name}" = "{"0" * 64}"\n')
    listed = spanlab("bench", "--list", "--data", ".", "--cards", card)
    assert "1 file, 1 of another version" in listed.stdout
    command = ("bench", "--data", ".", "--cards", card, "--dataset", "towers", "-o", "table")
    assert spanlab(*command).returncode == 0
    told = (tmp_path / "table/table.md").read_text(encoding="utf-8")
    assert f"Files of another version than the card's: {items.name}." in told


def test_a_file_of_predictions_that_does_not_fit_is_refused_by_item(
    spanlab: Run, tmp_path: Path, card: Path
) -> None:
    label = {"start": 0, "end": 99, "prob": 1.0}
    wrong = {"id": "t-en-1", "hard_labels": [[0, 99]], "soft_labels": [label]}
    (tmp_path / "theirs.jsonl").write_text(json.dumps(wrong) + "\n", encoding="utf-8")
    command = ("bench", "--data", ".", "--cards", card, "--dataset", "towers", "-o", "table")
    done = spanlab(*command, "--predictions", "theirs=theirs.jsonl")
    assert done.returncode == 1
    assert "the labels of 't-en-1' end past its answer" in done.stderr


def test_tables_and_files_of_other_datasets_are_read_as_their_cards_say(
    spanlab: Run, tmp_path: Path
) -> None:
    answer = "It is 120 m tall."
    row = {
        "id": "p1",
        "lang": "en",
        "wiki_title": "Tower",
        "wiki_passage": "The tower is 90 m tall.",
        "question": "How tall?",
        "golden_answer": "90 m",
        "llm_answer": answer,
        "annotated_span": "It is [HAL]120 m[/HAL] tall.",
        "labels": [[6, 11]],
    }
    parquet = tmp_path / "psiloqa/data/test-00000-of-00001.parquet"
    parquet.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([row]), parquet)
    (tmp_path / "ragtruth").mkdir()
    label = {"start": 6, "end": 11, "text": "120 m", "meta": "", "label_type": "Evident Conflict"}
    responses = [
        {
            "id": name,
            "source_id": "s",
            "model": "m",
            "temperature": 1,
            "labels": [label],
            "split": split,
            "quality": "good",
            "response": answer,
        }
        for name, split in (("r1", "test"), ("r2", "train"))
    ]
    source = {"source_id": "s", "task_type": "Summary", "source": "News", "prompt": "Sum up."}
    source["source_info"] = "The tower is 90 m tall."
    write_lines = (("response", responses), ("source_info", [source]))
    for name, lines in write_lines:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / f"ragtruth/{name}.jsonl").write_text(text, encoding="utf-8")
    command = ("bench", "--data", ".", "--controls", "everything", "-o", "table")
    done = spanlab(*command, "--detector", "offline")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "table/table.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["System"] == "mark everything"]
    assert [(row["Dataset"], row["Items"]) for row in rows] == [("ragtruth", "1"), ("psiloqa", "1")]
    assert float(rows[0]["Precision"]) == float(rows[1]["IoU"]) == pytest.approx(5 / len(answer))


def test_answers_and_steps_are_judged_as_a_whole(
    spanlab: Run,
    tmp_path: Path,
    items: Path,
    write: Callable[..., Path],
    record: Callable[..., Any],
) -> None:
    """Of three answers two have a hallucination; of two steps the second is an error."""
    own_card(tmp_path / "cards.toml", items, "answers")
    command = (
        "bench",
        "--data",
        ".",
        "--cards",
        "cards.toml",
        "--dataset",
        "towers",
        "-o",
        "table",
    )
    assert spanlab(*command).returncode == 0
    rows = figures(tmp_path / "table")
    assert float(rows["mark everything"]["Accuracy"]) == pytest.approx(2 / 3)
    assert float(rows["mark nothing"]["Accuracy"]) == pytest.approx(1 / 3)
    reasoned = record(1, "Step 1: It is tall. (Logical)\nStep 2: It is red. (Logical)")
    span = {"start": 38, "end": 48, "text": "It is red.", "prob": 1, "label": "Redundancy"}
    reasoned["annotations"][0]["spans"] = [span]
    steps = write(tmp_path / "steps.jsonl", reasoned)
    own_card(tmp_path / "cards.toml", steps, "steps")
    (tmp_path / "theirs.jsonl").write_bytes(steps.read_bytes())
    done = spanlab(*command, "--predictions", "theirs=theirs.jsonl")
    assert done.returncode == 0, done.stderr
    rows = figures(tmp_path / "table")
    assert float(rows["theirs"]["Accuracy"]) == 1.0
    assert float(rows["mark nothing"]["Accuracy"]) == 0.5
    assert spanlab("bench", "--check", "table").returncode == 0


def test_verdicts_on_whole_answers_are_scored_beside_controls(
    spanlab: Run, tmp_path: Path, items: Path
) -> None:
    """Of four answers two are hallucinated, without a place; nobody's spans are scored."""
    rows = [
        {
            "id": f"a{n}",
            "lang": "en",
            "question": "How tall is it?",
            "answer": f"The tower has {330 + n % 2} metres.",
            "context": "The tower has 330 metres.",
            "hallucinated": bool(n % 2),
        }
        for n in range(4)
    ]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    card = own_card(tmp_path / "cards.toml", items, "answers")
    options = ("--data", ".", "--cards", str(card), "--dataset", "towers", "-o", "table")
    controls = ("--controls", "everything,nothing")
    done = spanlab("bench", "--detector", "offline", *controls, *options)
    assert done.returncode == 0, done.stderr
    table = figures(tmp_path / "table")
    columns = ("Macro F1", "Balanced accuracy", "AUROC", "Average precision")
    for name in ("mark everything", "mark nothing"):
        shown = [float(table[name][column]) for column in columns]
        assert shown == pytest.approx([1 / 3, 0.5, 0.5, 0.5])
    assert float(table["mark everything"]["F1"]) == pytest.approx(2 / 3)
    assert float(table["offline"]["AUROC"]) == 1.0
    own_card(tmp_path / "cards.toml", items)  # as if places were marked
    by_place = spanlab("bench", "--detector", "offline", *options)
    assert (by_place.returncode, "no item has a reference" in by_place.stderr) == (1, True)

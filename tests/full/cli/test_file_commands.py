"""The command line from file to file: annotating, voting and scoring without a database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from gold_answers import GoldAnswers
from model_fixtures import KEY
from working_jobs import wait_until

from spanlab.formats import detect, read, write
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
Write = Callable[..., Path]
MakeRecord = Callable[..., dict[str, object]]


def _workers(parent: int) -> int:
    """Return how many processes that share a process's work there are."""
    count = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            started_by = int(status.read_text().rpartition(")")[2].split()[1])
            count += (
                started_by == parent and "spawn_main" in (status.parent / "cmdline").read_text()
            )
    return count


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, write: Write, record: MakeRecord) -> Path:
    """Answers to work on for a while."""
    path = tmp_path_factory.mktemp("many") / "many.jsonl"
    return write(path, *(record(n, "It is in Rome. " * 50) for n in range(9000)))


@pytest.mark.parametrize(
    ("source", "stop", "seconds"),
    [
        pytest.param("file", signal.SIGINT, 0, id="Ctrl+C-while-workers-start"),
        pytest.param("file", signal.SIGKILL, 1, id="killed"),
        pytest.param("dataset", signal.SIGINT, 0, id="Ctrl+C-while-workers-of-a-job-start"),
    ],
)
def test_workers_end_with_their_command_and_without_tracebacks(
    tmp_path: Path, spanlab: Run, many: Path, source: str, stop: signal.Signals, seconds: float
) -> None:
    if source == "dataset":  # some will do: to import them all takes as long as to work on them
        some = tmp_path / "some.jsonl"
        some.write_text("".join(many.read_text().splitlines(keepends=True)[:1000]))
        assert spanlab("import", some, "--dataset", "mine").returncode == 0
        work = ["mine"]
    else:
        work = [str(many), "-o", str(tmp_path / "out.jsonl")]
    process = subprocess.Popen(
        [
            *(str(Path(sys.executable).with_name("spanlab")), "annotate", *work),
            *("--detector", "offline", "--concurrency", "2"),
        ],
        env=os.environ | {"SPANLAB_HOME": str(tmp_path / "home")},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        wait_until(lambda: _workers(process.pid) > 0, "a process at work")
        time.sleep(seconds)
        if stop == signal.SIGINT:
            os.killpg(process.pid, stop)  # as a terminal does
        else:
            process.kill()
        # The workers hold the pipe's other end: it closes when they are gone.
        _, said = process.communicate(timeout=120)
    assert b"Traceback" not in said
    assert process.returncode != 0
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
    assert table[1].split()[:3] == ["Language", "Items", "IoU"]
    assert table[2].split()[:2] == ["sv", "5"]
    assert "44 gold items without a prediction" in scored.stdout
    assert "All marked: IoU" in scored.stdout


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


@pytest.mark.parametrize(
    "command",
    [
        ("annotate", "items.jsonl", "--detector", "offline"),
        ("vote", "items.jsonl", "--gold-annotators"),
    ],
)
def test_the_output_has_the_format_that_its_name_ends_in(
    spanlab: Run, items: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    assert spanlab(*command, "-o", "out.csv").returncode == 0
    assert detect(tmp_path / "out.csv") == "csv"
    assert spanlab(*command, "--format", "mushroom", "-o", "out.csv").returncode == 0
    refused = spanlab(*command, "-o", "out.xlsx")
    assert refused.returncode == 2
    assert "out.xlsx: '.xlsx' names no format; these do: .jsonl (spanlab)" in refused.stderr


def test_label_studio_in_is_label_studio_out(spanlab: Run, items: Path, tmp_path: Path) -> None:
    write(read(items), tmp_path / "tasks.json", format="labelstudio")
    done = spanlab("annotate", "tasks.json", "--detector", "offline", "-o", "out.json")
    assert done.returncode == 0, done.stderr
    assert detect(tmp_path / "out.json") == "labelstudio"


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


def test_labels_are_scored_each_by_itself_in_characters(spanlab: Run, tmp_path: Path) -> None:
    answer = "The tower in Rome, which is of iron, was finished in 1925."

    def side(name: str, *spans: tuple[int, int, str]) -> str:
        marks = [Span.of(answer, start, end, label=label) for start, end, label in spans]
        annotation = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=tuple(marks))
        write(
            [Record(item=Item(id="1", answer=answer), annotations=(annotation,))], tmp_path / name
        )
        return name

    gold = side("gold.jsonl", (0, 4, "contradiction"), (10, 14, "contradiction"), (20, 26, "date"))
    found = side("found.jsonl", (0, 4, "contradiction"), (10, 12, "date"), (30, 32, "name"))
    done = spanlab("score", found, gold, "--by-label")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert "Labels in 16 characters of 1 item" in done.stdout
    assert ["contradiction", "8", "4", "1.000", ".500", ".667"] in rows  # 4 of 8 characters
    assert ["date", "6", "2", ".000", ".000", ".000"] in rows
    assert ["any", "error", "14", "8", ".750", ".429", ".545"] in rows  # 6 of 8 and of 14
    assert ["contradiction", "date", "2"] in rows
    figures = json.loads(spanlab("score", found, gold, "--by-label", "--json").stdout)
    assert figures["characters"] == 16
    assert spanlab("score", found, gold, "--by-label", "--steps").returncode == 2
    nobody = spanlab("score", found, gold, "--by-label", "--annotator", "nobody")
    assert "there is no finished annotation by 'nobody'" in nobody.stderr


def test_an_annotator_that_a_file_does_not_have_is_named(spanlab: Run, items: Path) -> None:
    scored = spanlab("score", items, items, "--annotator", "frob")
    assert scored.returncode == 1
    assert "items.jsonl: there is no finished annotation by 'frob'" in scored.stderr


def test_a_second_system_is_compared_with_a_paired_test(spanlab: Run, items: Path) -> None:
    spanlab("annotate", items, "--detector", "offline", "-o", "a.jsonl")
    scored = spanlab("score", "a.jsonl", items, "--against", items)
    assert scored.returncode == 0, scored.stderr
    assert "PRED minus --against, paired" in scored.stdout


WRONG = [{"text": "1925", "reason": "it was 1889", "probability": 0.9}]
TOO_LONG = fail(400, "This model's maximum context length is 4096 tokens.")


def _asking(server: ModelServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "SPANLAB_MODEL": "m"}


def test_failures_are_said_by_cause_and_an_output_says_what_it_left_out(
    spanlab: Run, items: Path, model_server: ModelServer
) -> None:
    def script(ask: ModelRequest) -> ScriptedReply:
        made_up = {"text": "the lighthouse of Norvik"}
        return say_fields(parts=[*WRONG, made_up]) if "1925" in ask.text else TOO_LONG

    model_server.script(script)
    done = spanlab(
        *("annotate", items, "--detector", "ucsc-extract", "--format", "mushroom"),
        *("-o", "out.jsonl"),
        **_asking(model_server),
    )
    assert done.returncode == 3
    assert "wrote 1 item to out.jsonl" in done.stderr
    assert "left out 2 items that 'ucsc-extract' has not finished" in done.stderr
    assert "failed 2 times: the prompt is too long for m: “This model's maximum" in done.stderr
    assert "2 of 3 items failed" in done.stderr
    assert " · 1 of 2 quotes not found in their answer" in done.stderr


def test_a_run_of_failures_alone_ends_with_status_1(
    spanlab: Run, items: Path, model_server: ModelServer
) -> None:
    model_server.script(lambda ask: TOO_LONG)
    asked = ("annotate", items, "--detector", "ucsc-extract", "--detector", "ucsc-revise")
    done = spanlab(*asked, "-o", "out.jsonl", **_asking(model_server))
    assert done.returncode == 1
    assert "failed 6 times: the prompt is too long" in done.stderr
    assert "3 of 3 items failed" in done.stderr


def test_an_export_says_what_it_left_out(
    spanlab: Run, items: Path, write: Write, record: MakeRecord, tmp_path: Path
) -> None:
    spanlab("import", items, "--dataset", "d")
    spanlab("annotate", "d", "--detector", "offline")
    spanlab("import", write(tmp_path / "more.jsonl", record(9, "Not yet.")), "--dataset", "d")
    done = spanlab("export", "d", "--annotator", "offline", "--format", "mushroom", "-o", "s.jsonl")
    assert "wrote 3 items of 'd'" in done.stderr
    assert "left out 1 item without a finished annotation" in done.stderr


def test_an_export_says_which_questions_do_not_come_back_with_it(
    spanlab: Run, tmp_path: Path
) -> None:
    asks = {"asks": {"questions": [{"name": "fluent", "options": ["yes", "no"]}]}}
    source = tmp_path / "asks.jsonl"
    source.write_text(f'{json.dumps(asks)}\n{{"id": "1", "answer": "Oslo."}}\n')
    spanlab("import", source, "--dataset", "d")
    for end, is_lost in (("csv", True), ("zip", True), ("parquet", False), ("jsonl", False)):
        said = spanlab("export", "d", "-o", tmp_path / f"d.{end}").stderr
        assert ("left out what the dataset asks (fluent)" in said) is is_lost
        spanlab("import", tmp_path / f"d.{end}", "--dataset", end)
        back = spanlab("export", end, "--format", "spanlab").stdout
        assert ('{"asks":' in back) is not is_lost


def test_calls_under_way_stay_within_the_concurrency(
    spanlab: Run, items: Path, model_server: ModelServer
) -> None:
    """Also those of a detector that asks several things of one item at once."""
    model_server.latency = 0.02
    model_server.script(GoldAnswers(read(items)))
    done = spanlab(
        *("annotate", items, "--detector", "ucsc-kg", "--concurrency", "2", "-o", "out.jsonl"),
        **_asking(model_server),
    )
    assert done.returncode == 0, done.stderr
    assert model_server.busiest == 2


def test_files_are_annotated_with_the_columns_lists_and_turns_that_are_named(
    tmp_path: Path, spanlab: Run
) -> None:
    """As an import takes them; a dataset has had them chosen already."""
    chat = [{"role": role, "content": "It is in Rome."} for role in ("user", "assistant") * 2]
    source = tmp_path / "run.json"
    source.write_text(json.dumps({"a": [{"x": {"talk": chat}, "found": "In Paris."}], "b": [{}]}))
    reading = ("--column", "messages=x.talk", "--column", "passages=found", "--records", "a")
    made = tmp_path / "made.jsonl"
    done = spanlab(
        *("annotate", source, "--detector", "offline", *reading, "--turns", "all", "-o", made)
    )
    assert done.returncode == 0, done.stderr
    first, second = read(made)
    assert (first.item.id, second.item.id) == ("run-1-1", "run-1-2")
    assert first.item.passages[0].text == "In Paris."
    assert first.annotations[0].annotator == "offline"
    refused = spanlab("annotate", "mine", "--detector", "offline", "--column", "answer=x")
    assert refused.returncode == 2
    assert "what else says how files are read is for files" in refused.stderr


def test_gold_labels_of_any_name_are_what_a_dataset_is_scored_against(
    spanlab: Run, tmp_path: Path
) -> None:
    lines = [
        json.dumps({"id": name, "answer": answer, "label": [{"start": 0, "end": 5}]})
        for name, answer in (("a", "Paris was built in 1889."), ("b", "Tower of Ada."))
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines))
    assert spanlab("import", "mine.jsonl", "--dataset", "mine").returncode == 0
    assert spanlab("annotators", "rename", "mine", "gold", "expert").returncode == 0
    assert spanlab("annotate", "mine", "--detector", "offline").returncode == 0
    done = spanlab("score", "mine", "--annotator", "offline")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[2].split()[:2] == ["und", "2"]


def test_ctrl_c_is_told(tmp_path: Path, model_server: ModelServer) -> None:
    """With what becomes of the file that was being written."""
    asked = say_fields(parts=["Paris"])
    model_server.script(lambda ask: replace(asked, delay=120))
    (tmp_path / "mine.jsonl").write_text(json.dumps({"id": "a", "answer": "Paris is old."}))
    command = ("-m", "spanlab", "annotate", "mine.jsonl", "--detector", "ucsc-extract")
    with subprocess.Popen(
        [sys.executable, *command, "--model", "m", "-o", "out.jsonl"],
        cwd=tmp_path,
        env={**os.environ, "SPANLAB_HOME": str(tmp_path / "home")},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until(lambda: bool(model_server.requests), "a call")
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "out.jsonl is not written; replies of models are saved" in said
    assert said.endswith("spanlab: stopped by Ctrl+C\n")
    assert not (tmp_path / "out.jsonl").exists()

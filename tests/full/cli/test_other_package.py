"""An installed package brings a detector, which the command line lists, checks and runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from forks import run_code
from other_package import install

from spanlab.formats import read
from spanlab.testing import ModelServer, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
Write = Callable[..., Path]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("shouting"))


@pytest.fixture
def run(spanlab: Run, site: Path) -> Run:
    """Run `spanlab` where the package is installed, forked unless standard output is a file."""
    return partial(spanlab, stdout=subprocess.PIPE, PYTHONPATH=str(site))


@pytest.fixture
def answers(tmp_path: Path, write: Write) -> Path:
    items = [{"id": f"i{n}", "answer": "The NASA and the EU said NO."} for n in range(3)]
    return write(tmp_path / "answers.jsonl", *items)


def spans(path: Path) -> set[tuple[str, ...]]:
    return {
        tuple(span.text or "" for span in found.spans)
        for record in read(path)
        for found in record.annotations
    }


def test_it_is_listed_with_its_options_and_what_is_broken_with_the_reason(
    run: Run, tmp_path: Path
) -> None:
    with (tmp_path / "listed").open("wb") as listed:
        done = run("detectors", stdout=listed)
    assert done.returncode == 0, done.stderr
    shown = " ".join((tmp_path / "listed").read_text().split())
    for line in (
        "shouting marks words in capital letters",
        "options letters=3, mark=word",
        "broken cannot be used: ModuleNotFoundError: No module named",
        "odd cannot be used: PydanticInvalidForJsonSchema",
        "offline (shouting) cannot be used: another package has a detector",
        "offline marks words that passages and question do not support",
    ):
        assert line in shown
    refused = run("annotate", "mine", "--detector", "broken")
    assert refused.returncode == 2
    assert "'broken' of the package shouting is broken" in refused.stderr


def test_its_option_is_set_on_the_command_line_from_file_to_file(
    run: Run, answers: Path, tmp_path: Path
) -> None:
    detect = ("annotate", answers, "--detector", "shouting", "-o", tmp_path / "out.jsonl")
    done = run(*detect, "--option", "letters=2")
    assert done.returncode == 0, done.stderr
    assert spans(tmp_path / "out.jsonl") == {("NASA", "EU", "NO")}
    done = run(*detect, "--option", "letters=many")
    assert done.returncode == 2
    assert "option 'letters' of 'shouting' is 'many'" in done.stderr


def test_a_job_hands_its_option_to_other_processes(
    spanlab: Run, run: Run, answers: Path, tmp_path: Path
) -> None:
    assert spanlab("import", answers, "--dataset", "mine").returncode == 0
    options = ("--option", "shouting.mark=answer", "--concurrency", "2")
    done = run("annotate", "mine", "--detector", "shouting", *options)
    assert done.returncode == 0, done.stderr
    assert spanlab("export", "mine", "-o", "out.jsonl").returncode == 0
    assert spans(tmp_path / "out.jsonl") == {("The NASA and the EU said NO.",)}


@pytest.mark.parametrize("concurrency", ["1", "2"])
def test_a_library_that_panics_fails_its_item_alone_and_is_named_where_nothing_can_be_made(
    concurrency: str, spanlab: Run, run: Run, tmp_path: Path, write: Write
) -> None:
    items = [{"id": f"i{n}", "answer": "PANIC" if n == 1 else "The NASA"} for n in range(3)]
    file = write(tmp_path / "answers.jsonl", *items)
    assert spanlab("import", file, "--dataset", "mine").returncode == 0
    options = ("--detector", "shouting", "--concurrency", concurrency)
    run("annotate", file, "-o", tmp_path / "streamed.jsonl", *options)
    run("annotate", "mine", *options)
    assert spanlab("export", "mine", "-o", "job.jsonl").returncode == 0
    for name in ("streamed.jsonl", "job.jsonl"):
        records = sorted(read(tmp_path / name), key=lambda record: record.item.id)
        said = [record.by("shouting") for record in records]
        assert [each and each.status for each in said] == ["done", "failed", "done"]
        assert said[1] is not None
        assert said[1].note == "PanicException: index out of bounds"
    broken = run("annotate", file, *options, "--option", "letters=99")
    assert broken.returncode == 2
    assert broken.stderr.startswith(
        "spanlab: the detector 'shouting' cannot be made: no such letters"
    )


def test_its_cards_of_datasets_are_found(run: Run) -> None:
    done = run("bench", "--list")
    assert done.returncode == 0, done.stderr
    assert "the package shouting" in done.stdout


def test_its_format_is_read_and_written_by_name(spanlab: Run, run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The NASA.\nIt was.\n", encoding="utf-8")
    done = run("import", "a.txt", "--dataset", "mine", "--format", "shouts")
    assert done.returncode == 0, done.stderr
    done = run("export", "mine", "--format", "shouts", "-o", "b.txt")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b.txt").read_text(encoding="utf-8") == "THE NASA.\nIT WAS.\n"
    refused = run("import", "a.txt", "--dataset", "mine", "--format", "whispers")
    assert refused.returncode == 2
    assert "no format 'whispers'; known are auto, spanlab" in refused.stderr
    assert "shouts" in refused.stderr
    assert run("export", "mine", "--format", "whispers").returncode == 2
    assert spanlab("export", "mine", "--format", "csv", "-o", "c.csv").returncode == 0
    done = run("export", "mine", "--format", "csv", "-o", "d.csv")  # nobody takes our names
    assert (tmp_path / "c.csv").read_bytes() == (tmp_path / "d.csv").read_bytes()


def test_its_retriever_is_searched_by_name(
    run: Run, answers: Path, tmp_path: Path, model_server: ModelServer
) -> None:
    model_server.script(lambda ask: say_fields(parts=["NASA"]))
    detect = ("annotate", answers, "--detector", "ucsc-extract", "-o", tmp_path / "out.jsonl")
    run = partial(run, OPENAI_BASE_URL=model_server.url, OPENAI_API_KEY="k", SPANLAB_MODEL="m")
    done = run(*detect, "--search", "library", "--passages-per-search", "2")
    assert done.returncode == 0, done.stderr
    record = next(iter(read(tmp_path / "out.jsonl")))
    assert [each.text[:11] for each in record.item.passages] == ["Of The NASA"] * 2
    assert [each.retriever for each in record.item.retrievals] == ["library"]
    refused = run(*detect, "--search", "nowhere")
    assert refused.returncode == 2
    assert "the retriever 'nowhere' cannot be loaded: No module named" in refused.stderr


def test_its_metric_is_a_column_of_score(run: Run, tmp_path: Path, write: Write) -> None:
    labels = {"hard_labels": [[4, 8]], "soft_labels": [{"start": 4, "end": 8, "prob": 1}]}
    line = {"id": "a", "lang": "EN", "model_output_text": "The NASA.", **labels}
    file = write(tmp_path / "val.jsonl", line)
    done = run("score", file, file, "--metric", "same", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["more"]["same"]["macro"]["mean"] == 1
    for name, why in (("nothing", "cannot be loaded"), ("nobodys", "available: nothing, same")):
        refused = run("score", file, file, "--metric", name)
        assert refused.returncode == 2
        assert why in refused.stderr
    refused = run("score", file, file, "--metric", "same", "--claims")
    assert "--metric is of spans" in refused.stderr


def test_its_metric_scores_by_name(site: Path, tmp_path: Path) -> None:
    code = """
import spanlab
rows = [{"answer": "The NASA.", "label": [{"start": 4, "end": 8}]}]
records = spanlab.annotate(spanlab.load(rows), "shouting")
print(list(spanlab.score(records, "shouting", metrics=["same"]).to_pandas()["same"]))
try:
    spanlab.score(records, "shouting", metrics=["nothing"])
except spanlab.base.errors.UsageError as error:
    print(error)
"""
    done = run_code(code, {"PYTHONPATH": str(site), "SPANLAB_HOME": str(tmp_path)}, tmp_path)
    first, second = done.stdout.splitlines()
    assert first == "[1.0, 1.0]"
    assert second.startswith("the metric 'nothing' cannot be loaded: No module named")

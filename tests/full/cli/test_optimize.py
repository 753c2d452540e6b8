"""`spanlab optimize` from labels to a program in use, against a scripted endpoint."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from gold_answers import GoldAnswers, better_when_asked

from spanlab.base.settings import Settings
from spanlab.formats import read, write
from spanlab.jobs.job_store import JobStore
from spanlab.models.programs import ProgramRegistry
from spanlab.testing import ModelServer, ScriptedReply, fail

Run = Callable[..., subprocess.CompletedProcess[str]]

SMALL = ("--trials", "3", "--lang", "en", "--lang", "de")


@pytest.fixture
def tuned(spanlab: Run, model_server: ModelServer, samples: Path) -> Run:
    """`spanlab` with the samples imported and an endpoint that rewards good prompts."""
    model_server.script(GoldAnswers(read(samples), noise=better_when_asked()))
    assert spanlab("import", samples, "--dataset", "mine").returncode == 0

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return spanlab(
            *arguments,
            OPENAI_API_KEY="sk-secret",
            OPENAI_BASE_URL=model_server.url,
            SPANLAB_MODEL="small",
        )

    return run


def test_a_tuned_prompt_is_found_used_and_asked_by_the_detector(
    tuned: Run, model_server: ModelServer, tmp_path: Path
) -> None:
    done = tuned(
        "optimize", "mine", "--detector", "ucsc-extract", "--name", "first", "--use", *SMALL
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "first\n"
    assert "better than the untuned prompt" in done.stderr
    assert "ucsc-extract uses first" in done.stderr
    assert "sk-secret" not in done.stderr
    program = ProgramRegistry(tmp_path / "home" / "programs").load("first")
    assert program.held_out is not None
    found = tuned("annotate", "mine", "--detector", "ucsc-extract", "--limit", "1")
    assert found.returncode == 0, found.stderr
    instruction = program.predictors["extract"].instruction
    assert instruction.splitlines()[0] in model_server.requests[-1].text


def test_a_member_of_an_ensemble_is_tuned_for_its_metric_and_alone_uses_what_was_found(
    tuned: Run, model_server: ModelServer, samples: Path, tmp_path: Path
) -> None:
    """Guidance stands in until then for what the paper tuned its third and fourth member for."""
    member = "ucsc-3-gpt4o-extract-overlap"
    options = ("--detector", "ucsc", "--member", member, "--name", "overlap", *SMALL)
    done = tuned("optimize", "mine", *options)
    assert done.returncode == 0, done.stderr
    program = ProgramRegistry(tmp_path / "home" / "programs").load("overlap")
    assert (program.detector, program.member) == ("ucsc-extract", member)
    assert (program.metric, program.task_model) == ("iou+corr", "gpt-4o")
    instruction = program.predictors["extract"].instruction.splitlines()[0]
    unseen = next(record for record in read(samples) if record.item.lang == "fi")
    write([unseen], tmp_path / "unseen.jsonl")
    annotate = ("annotate", "unseen.jsonl", "--detector", "ucsc", "-o", "found.jsonl")
    model_server.requests.clear()
    assert tuned(*annotate).returncode == 0
    own = model_server.requests[:]
    assert (len(own), sum("most careful readers" in ask.text for ask in own)) == (5, 1)
    assert not any(instruction in ask.text for ask in own)
    assert tuned("programs", "use", "overlap").stderr == f"{member} uses overlap\n"
    assert tuned(*annotate).returncode == 0
    (changed,) = model_server.requests[5:]
    assert changed.body["model"] == "gpt-4o"
    assert instruction in changed.text
    other = tuned("programs", "use", "overlap", "--member", "ucsc-2-o1-revise")
    assert (other.returncode, "a tuned prompt of 'ucsc-extract'" in other.stderr) == (2, True)
    unknown = tuned("programs", "use", "overlap", "--member", "ucsc-9")
    assert (unknown.returncode, "no detector named 'ucsc-9'" in unknown.stderr) == (2, True)
    listed = tuned("programs", "list").stdout.splitlines()[1].split()
    assert listed[:3] == ["*", "overlap", member]


def test_what_it_will_come_to_is_said_without_a_call(tuned: Run, model_server: ModelServer) -> None:
    estimate = tuned("optimize", "mine", "--detector", "ucsc-extract", "--dry-run", *SMALL)
    assert estimate.returncode == 0, estimate.stderr
    assert estimate.stdout.startswith("15 labelled items; at most 16 evaluations, ")
    assert model_server.requests == []


def test_searching_for_passages_counts_once_for_each_item(tuned: Run) -> None:
    asked = ("optimize", "mine", "--detector", "ucsc-extract", "--dry-run", *SMALL)
    before, after = (
        int(tuned(*asked, *more).stdout.partition(" evaluations, ")[2].split(" calls")[0])
        for more in ((), ("--retriever", "web"))
    )
    assert after == before + 15
    searched = tuned(*asked, "--search", "brave").stdout
    assert f" {before} calls" in searched
    assert "), 15 searches, " in searched


def test_searches_for_passages_are_limited(tuned: Run, model_server: ModelServer) -> None:
    page = {"title": "T", "url": "https://a.example", "content": "It is in Paris."}
    model_server.script(lambda ask: ScriptedReply(body={"results": [page]}))
    address = ("--search", "searxng", "--search-url", f"{model_server.url}/search")
    limits = ("--max-searches", "2")
    stopped = tuned("optimize", "mine", "--detector", "ucsc-extract", *address, *limits, *SMALL)
    assert stopped.returncode == 3
    assert "the budget of 2 searches is used up" in stopped.stderr
    assert model_server.count == 2
    assert "2 searches" in stopped.stderr
    (listed,) = tuned("jobs", "list").stdout.splitlines()[1:]
    assert listed.split()[1:5] == ["failed", "0", "of", "16"]


def test_the_model_that_writes_prompts_is_asked_as_all_are_but_draws_freely(
    tuned: Run, model_server: ModelServer
) -> None:
    options = ("max_tokens=900", "temperature=0", "seed=4")
    chosen = [word for option in options for word in ("--model-option", option)]
    asked = ("optimize", "mine", "--detector", "ucsc-extract", "--folds", "0", *chosen, *SMALL)
    assert tuned(*asked, "--prompt-model", "large").returncode == 0
    written = [ask.body for ask in model_server.requests if ask.body["model"] == "large"]
    assert written
    assert {(body["max_tokens"], body["temperature"], body.get("seed")) for body in written} == {
        (900, 1.0, None)
    }


def test_a_search_that_breaks_says_why(tuned: Run, model_server: ModelServer) -> None:
    """An optimisation that does not get anywhere says why."""
    model_server.script(lambda ask: fail(402, "no money"))
    broken = tuned("optimize", "mine", "--detector", "ucsc-extract", *SMALL)
    assert broken.returncode == 1
    assert "credits exhausted" in broken.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("--metric", "bleu"), "no metric named 'bleu'", id="metric"),
        pytest.param(("--folds", "1"), "one fold holds nothing out", id="one-fold"),
        pytest.param(("--auto", "light", "--trials", "3"), "not both", id="two-budgets"),
        pytest.param(("--rate", "0"), "'--rate': 0 is not greater than 0", id="rate"),
        pytest.param(("--member", "x"), "'ucsc-extract' is not an ensemble", id="no-ensemble"),
        pytest.param(("--detector", "ucsc"), "no prompts of its own", id="no-member"),
        pytest.param(
            ("--detector", "ucsc", "--member", "ucsc-3"), "it has ucsc-1-llama", id="unknown-member"
        ),
        pytest.param(("--transfer", "pooled"), "for one language", id="no-target"),
        pytest.param(("--annotators", "Ada"), "gold labels are nobody's", id="whose-gold"),
        pytest.param(("--use", "--queue"), "leave --queue out", id="use-later"),
        pytest.param(("--use", "--folds", "0"), "2 folds or more", id="use-unmeasured"),
        pytest.param(("--detector", "offline"), "no prompts of its own to tune", id="offline"),
    ],
)
def test_what_makes_no_search_is_refused(tuned: Run, options: tuple[str, ...], said: str) -> None:
    refused = tuned("optimize", "mine", "--detector", "ucsc-extract", *options)
    assert refused.returncode == 2, refused.stderr
    assert said in refused.stderr


def test_queued_searches_are_listed(tuned: Run, tmp_path: Path) -> None:
    queued = tuned(
        "optimize", "mine", "--detector", "ucsc-extract", "--queue", "--rate", "90", *SMALL
    )
    assert queued.returncode == 0, queued.stderr
    listed = tuned("jobs", "list")
    assert "ucsc-extract for iou on mine" in listed.stdout
    job_id = queued.stderr.split()[2].rstrip(";")
    assert json.dumps(job_id)[1:-1] in listed.stdout
    home = tmp_path / "home"
    row = JobStore(Settings(home=home, database_url=f"sqlite:///{home / 'spanlab.db'}")).row(job_id)
    assert row.input is not None
    assert row.input["args"][0]["rate"] == 90


def test_verdicts_on_whole_answers_tune_a_prompt_by_metrics_of_their_own(
    tuned: Run, samples: Path, tmp_path: Path
) -> None:
    """Labels without a place score whether an answer is called hallucinated, and no IoU."""
    with (tmp_path / "thumbs.csv").open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(("id", "lang", "question", "answer", "hallucinated"))
        for record in read(samples):
            item, gold = record.item, record.by("gold")
            assert gold is not None
            verdict = "yes" if gold.hallucinated else "no"
            table.writerow((item.id, item.lang, item.question, item.answer, verdict))
    assert tuned("import", "thumbs.csv", "--dataset", "thumbs").returncode == 0
    optimize = ("optimize", "thumbs", "--detector", "ucsc-extract")
    by_place = tuned(*optimize, *SMALL)
    assert (
        by_place.returncode,
        "tunes on that (--metric) is answer-accuracy" in by_place.stderr,
    ) == (1, True)
    done = tuned(*optimize, "--metric", "answer-accuracy", "--name", "judging", *SMALL)
    assert done.returncode == 0, done.stderr
    program = ProgramRegistry(tmp_path / "home" / "programs").load("judging")
    assert program.metric == "answer-accuracy"
    assert program.held_out is not None
    # The scripted model finds what is wrong, whatever its prompt: that alone is scored.
    assert program.held_out.tuned.mean > 0.6
    assert tuned(*optimize, "--metric", "answer-brier", "--dry-run", *SMALL).returncode == 0

"""Detectors that ask models, and jobs, on the command line."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from ports import free_port
from postgres import postgres

from spanlab.jobs import job_store
from spanlab.storage import upgrade
from spanlab.testing import ModelServer, ScriptedReply, fail, say

Run = Callable[..., subprocess.CompletedProcess[str]]

NOTHING = "[[ ## parts ## ]]\n[]\n\n[[ ## completed ## ]]"


@pytest.fixture
def items(tmp_path: Path) -> Path:
    path = tmp_path / "items.jsonl"
    lines = [
        {"id": f"i{n}", "lang": "en", "question": "?", "answer": f"Number {n} it is."}
        for n in range(5)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("name", ["..", ".", " ", "x" * 201, "a\nb", "half \ud83d"], ids=ascii)
def test_a_worker_has_a_name_that_a_file_can_have(spanlab: Run, name: str) -> None:
    done = spanlab("worker", "--name", name)
    assert done.returncode == 2
    assert done.stderr.startswith("spanlab: a worker cannot be called")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_dataset_is_annotated_as_a_job_that_can_be_looked_at_and_retried(
    model_server: ModelServer, spanlab: Run, items: Path
) -> None:
    model_server.script(lambda ask: fail(400) if "Number 3 " in ask.text else say(NOTHING))
    spanlab("import", items, "--dataset", "d")
    done = spanlab("annotate", "d", "--detector", "ucsc-extract", "--model", "m")
    assert done.returncode == 3, done.stderr
    assert "ucsc-extract annotated 4 items of 'd'" in done.stderr
    assert "4 model calls" in done.stderr
    assert "1 item failed: spanlab jobs show" in done.stderr

    listed = spanlab("jobs", "list").stdout.splitlines()[1].split()
    assert listed[1:7] == ["done", "5", "of", "5", "1", "(20"]
    assert listed[-1] == "m"
    shown = spanlab("jobs", "show", listed[0]).stdout
    assert ["i3", "ucsc-extract"] in [line.split()[:2] for line in shown.splitlines()]

    model_server.script(lambda ask: say(NOTHING))
    again = spanlab("jobs", "retry", listed[0])
    assert again.returncode == 0, again.stderr
    assert "1 of 1 item\n" in again.stderr

    asked = ["annotate", "d", "--detector", "ucsc-extract", "--model", "m"]
    nothing = spanlab(*asked).stderr
    assert "annotated 0 items of 'd': all are done; --again annotates them again" in nothing
    assert "other settings" not in nothing
    other = [*asked[:-1], "larger"]
    said = spanlab(*other, "--option", "floor=0.5").stderr
    assert (
        "ucsc-extract was last run here with other settings: now model.model larger (it was m)"
        in said
    )
    assert "floor 0.5 (it was " in said
    assert "all are done; --again" in said
    calls = model_server.count
    assert "annotated 5 items of 'd'" in spanlab(*other, "--again").stderr
    assert model_server.count == calls + 5
    assert "other settings" not in spanlab(*other).stderr
    anew = spanlab(*asked, "--item", "i1", "--item", "i4")
    assert "annotated 2 items of 'd'" in anew.stderr
    assert "has no item 'i9'" in spanlab(*asked, "--item", "i9").stderr

    model_server.script(lambda ask: fail(400))
    two = ("--detector", "ucsc-extract", "--detector", "ucsc-revise", "--model", "other")
    assert spanlab("annotate", "d", *two, "--again").returncode == 1, "of two, both failed on all"
    assert spanlab("annotate", "d", *two, "--detector", "offline", "--again").returncode == 3


def test_files_are_annotated_without_a_database(
    model_server: ModelServer, spanlab: Run, items: Path
) -> None:
    model_server.script(lambda ask: say(NOTHING))
    done = spanlab(
        "annotate", items, "--detector", "ucsc-extract", "--model", "m", "--max-calls", "3",
        "--concurrency", "1", "-o", "out.jsonl", "--format", "spanlab",
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "budget of 3 calls is used up" in done.stderr
    out = [json.loads(line) for line in (items.parent / "out.jsonl").read_text().splitlines()]
    assert [len(record.get("annotations", ())) for record in out] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(fail(401, "no"), "does not accept the key in OPENAI_API_KEY", id="key"),
        pytest.param(fail(404, "no"), "has no model 'm' at this address", id="model"),
        pytest.param(None, "no connection to 127.0.0.1", id="address"),
    ],
)
def test_a_wrong_key_model_or_address_ends_the_work_as_failed_and_leaves_items_open(
    model_server: ModelServer,
    spanlab: Run,
    items: Path,
    monkeypatch: pytest.MonkeyPatch,
    reply: ScriptedReply | None,
    reason: str,
) -> None:
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.05)  # seconds before each try
    model_server.script(lambda ask: reply or fail(500))
    address = {} if reply else {"OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1"}
    one_by_one = ("--detector", "ucsc-extract", "--model", "m", "--concurrency", "1")
    spanlab("import", items, "--dataset", "d")
    failed = spanlab("annotate", "d", *one_by_one, **address)
    assert failed.returncode == 1
    assert reason in failed.stderr
    assert model_server.count == (1 if reply else 0)
    (listed,) = spanlab("jobs", "list").stdout.splitlines()[1:]
    assert listed.split()[1:5] == ["failed", "0", "of", "5"]
    assert reason in listed

    to_file = spanlab("annotate", items, *one_by_one, "-o", "out.jsonl", **address)
    assert to_file.returncode == 1
    assert reason in to_file.stderr
    assert not (items.parent / "out.jsonl").exists()

    model_server.script(lambda ask: say(NOTHING))
    again = spanlab("jobs", "retry", listed.split()[0])
    if reply:  # the address is part of what a job was asked
        assert "5 of 5 items" in again.stderr, again.stderr
    else:
        again = spanlab("annotate", "d", *one_by_one)
        assert "ucsc-extract annotated 5 items" in again.stderr, again.stderr
    assert again.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--detector", "ucsc-extract"], "--model", id="no-model"),
        pytest.param(["--detector", "offline", "--model", "m"], "asks no model", id="offline"),
        pytest.param(
            ["--detector", "ucsc-extract", "--model", "m", "--retriever", "bm25"],
            "--corpus",
            id="no-corpus",
        ),
        pytest.param(
            ["--detector", "ucsc-extract", "--model", "m", "--claims"], "--search", id="claims"
        ),
        pytest.param(
            ["--detector", "offline", "--rate", "1"],
            "--rate is for a dataset: import the files first",
            id="rate",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(
    spanlab: Run, items: Path, arguments: list[str], message: str
) -> None:
    refused = spanlab("annotate", items, *arguments)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_a_job_that_is_not_there_is_said_to_be_so(spanlab: Run) -> None:
    refused = spanlab("jobs", "pause", "nothing")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "there is no job 'nothing'" in refused.stderr


@pytest.mark.parametrize("command", ["annotate d --detector offline", "jobs list"])
def test_a_server_that_is_away_is_waited_for_with_a_remark(
    spanlab: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, command: str
) -> None:
    now, port = 0.0, free_port()
    url = f"postgresql://spanlab@127.0.0.1:{port}/postgres"

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now == comes_back:
            server.enter_context(postgres("127.0.0.1", port))

    monkeypatch.setattr(upgrade, "sleep", pause)
    monkeypatch.setattr(upgrade, "monotonic", lambda: now)
    comes_back = 1.0
    with ExitStack() as server:
        done = spanlab(*command.split(), SPANLAB_DATABASE_URL=url)
        assert (done.returncode == 0) == (command == "jobs list")
        assert ("no dataset named 'd'" in done.stderr) == (command != "jobs list")
        (remark,) = caplog.messages
        assert "Connection refused" in remark
        assert remark.endswith("; waiting for it, up to a minute")
        unknown = spanlab(*command.split(), SPANLAB_DATABASE_URL=url.replace("/postgres", "/none"))
        assert 'database "none" does not exist' in unknown.stderr
        assert now == 1.0
    monkeypatch.setattr(job_store, "_STORES", {})  # as in a process of its own
    comes_back = 0.0
    done = spanlab(*command.split(), SPANLAB_DATABASE_URL=url)
    assert done.returncode == 1
    assert "Connection refused" in done.stderr
    assert now == 61.0


def test_commands_for_jobs_refuse_a_newer_database_or_an_emptied_one(
    spanlab: Run, items: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spanlab("import", items, "--dataset", "d")
    assert spanlab("annotate", "d", "--detector", "offline").returncode == 0
    assert spanlab("jobs", "list").returncode == 0
    path = items.parent / "home" / "spanlab.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE spanlab_revision SET version_num = '9999'")
    commands = (
        "jobs list",
        "jobs show a",
        "worker",
        "memory list",
        "annotate d --detector offline",
    )
    for command in commands:
        monkeypatch.setattr(job_store, "_STORES", {})  # as in a process of its own
        newer = spanlab(*command.split())
        assert newer.returncode == 1, command
        assert "it was made by a newer spanlab; update this one" in newer.stderr, command
    path.write_bytes(b"")
    for command in (*commands, "datasets"):
        monkeypatch.setattr(job_store, "_STORES", {})
        emptied = spanlab(*command.split())
        assert emptied.returncode == 1, command
        assert f"the database {path} is empty (0 bytes)" in emptied.stderr, command
        assert "jobs.db" in emptied.stderr, command
    assert path.stat().st_size == 0

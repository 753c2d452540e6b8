"""`spanlab check-model` against endpoints that can do this and cannot do that."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from detector_cases import TOWER

from spanlab.formats import write
from spanlab.models.refusals import dialect_of
from spanlab.schema import Record
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]


def capital(ask: ModelRequest) -> ScriptedReply:
    """Answer a check as a model does that can do everything; else find nothing."""
    in_json = "response_format" in ask.body
    if "capital of France" in ask.text:
        return say('{"capital": "Paris"}' if in_json else "Paris")
    wrong = [{"text": "1958", "probability": 1}] if "in 1958." in ask.text else []
    return say(json.dumps({"parts": wrong})) if in_json else say_fields(parts=wrong)


@pytest.fixture
def check(model_server: ModelServer, spanlab: Run) -> Run:
    def run(*options: str) -> subprocess.CompletedProcess[str]:
        model_server.script(capital)
        return spanlab("check-model", *options, SPANLAB_MODEL="small")

    return run


def verdicts(table: str) -> dict[str, str]:
    """What works, and of what does not the note."""
    rows = [line.strip() for line in table.splitlines()[1:-1]]
    parts = [row.partition(" no ") if " no " in row else row.partition(" yes") for row in rows]
    return {kind.strip(): note.strip() if "no" in sep else "" for kind, sep, note in parts}


@pytest.mark.parametrize(
    ("mode", "lacks"),
    [
        pytest.param("as-meant", {}, id="everything"),
        pytest.param("no-json-schema", {}, id="schema-in-another-form"),
        pytest.param(
            "no-response-format",
            {"structured": "response_format", "JSON": "response_format"},
            id="response-format",
        ),
        pytest.param("no-system-role", {"system role": "no system message"}, id="system"),
        pytest.param("no-temperature", {"temperature": "temperature"}, id="temperature"),
        pytest.param("usage-null", {"usage": "counts no tokens"}, id="usage"),
        pytest.param("think", {}, id="thoughts"),
    ],
)
def test_each_kind_of_call_is_tried_once(
    check: Run, model_server: ModelServer, mode: str, lacks: dict[str, str]
) -> None:
    model_server.mode = mode
    done = check()
    assert done.returncode == 0, done.stderr
    found = verdicts(done.stdout)
    kinds = "chat temperature top_p seed|system role|JSON|structured|usage|parallel|ucsc-extract"
    assert set(found) == {*kinds.partition("|")[0].split(), *kinds.split("|")[1:]}
    missing = {kind: note for kind, note in found.items() if note}
    assert set(missing) == set(lacks)
    for kind, word in lacks.items():
        assert word in missing[kind]


def test_speed_and_cost_are_told(check: Run) -> None:
    options = ("--price", "1,0.5,2", "--model", "large", "--model-option", "top_p=none")
    check(*options)
    done = check(*options)  # of which no reply is in the cache
    first, *_, last = done.stdout.splitlines()
    assert first.startswith("large at http://127.0.0.1:")
    assert "top_p" not in done.stdout
    assert "tokens a second; this check: 12 calls, " in last
    assert "$0.0" in last


@pytest.mark.parametrize(
    ("parts", "note"),
    [
        pytest.param([], "does not mark “1958”, which is wrong", id="nothing"),
        pytest.param(
            [{"text": "Varnholm suspension bridge", "probability": 1}],
            "does not mark “1958”, which is wrong; marks “Varnholm suspension bridge”, which is",
            id="right-words",
        ),
        pytest.param(
            [{"text": "the lighthouse of Norvik", "probability": 1}],
            "failed on a wrong answer: the model quoted 1 text of which none is in the answer",
            id="another-text",
        ),
    ],
)
def test_a_model_that_cannot_do_the_task_is_told_by_a_wrong_and_a_right_answer(
    model_server: ModelServer, spanlab: Run, parts: list[dict[str, object]], note: str
) -> None:
    def reply(ask: ModelRequest) -> ScriptedReply:
        return capital(ask) if "capital" in ask.text else say(json.dumps({"parts": parts}))

    model_server.script(reply)
    done = spanlab("check-model", SPANLAB_MODEL="small")
    assert note in verdicts(done.stdout)["ucsc-extract"]
    assert done.returncode == 1


def test_the_window_is_read_from_the_list_of_models(check: Run, model_server: ModelServer) -> None:
    assert "context window: unknown;" in check().stdout
    model_server.windows = {"large": 900, "small": 8192}
    assert "context window: 8,192 tokens;" in check().stdout


def test_a_model_that_does_not_answer_says_why(check: Run, model_server: ModelServer) -> None:
    model_server.mode = "out-of-memory"
    done = check()
    assert done.returncode == 1
    assert "chat  no" in done.stdout
    assert "memory" in done.stdout


@pytest.mark.parametrize(
    ("mode", "form"),
    [
        ("as-meant", "json_schema"),
        ("no-json-schema", "json_object"),  # where llama.cpp's server reads the schema
        ("no-response-format", None),
    ],
)
def test_later_runs_ask_by_schema_where_that_was_found_to_work(
    check: Run,
    model_server: ModelServer,
    spanlab: Run,
    tmp_path: Path,
    mode: str,
    form: str | None,
) -> None:
    write([Record(item=TOWER)], tmp_path / "tower.jsonl")
    model_server.mode = mode
    model_server.script(capital)
    asked = []
    for options in ("seed=1", "seed=2", "structured=false"):
        done = spanlab(
            *("annotate", "tower.jsonl", "--detector", "ucsc-extract", "-o", "found.jsonl"),
            *("--model-option", options),
            SPANLAB_MODEL="small",
        )
        assert done.returncode == 0, done.stderr
        assert "capital" not in model_server.requests[-1].text
        said = model_server.requests[-1].body.get("response_format", {})
        assert ("schema" in said) == (said.get("type") == "json_object")
        asked.append(said.get("type"))
        check()
        dialect_of.cache_clear()  # as in a process of its own
    assert asked == [None, form, None]


def test_later_runs_leave_out_what_was_refused_from_the_first_call_on(
    check: Run, model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    write([Record(item=TOWER)], tmp_path / "tower.jsonl")
    model_server.mode = "no-temperature"
    assert check().returncode == 0
    dialect_of.cache_clear()  # as in a process of its own
    before = len(model_server.requests)
    options = ("--detector", "ucsc-extract", "-o", "found.jsonl")
    assert spanlab("annotate", "tower.jsonl", *options, SPANLAB_MODEL="small").returncode == 0
    (asked,) = model_server.requests[before:]
    assert "temperature" not in asked.body
    assert asked.body["top_p"] == 0.7

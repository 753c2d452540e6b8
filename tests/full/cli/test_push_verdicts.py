"""Verdicts go back to where traces live: a server here speaks the APIs of three programs."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from receiver import receiving
from trace_homes import KEYS, TraceHomes, living

import spanlab as spanlab_package
from spanlab.base.errors import UsageError

Run = Callable[..., subprocess.CompletedProcess[str]]
Write = Callable[..., Path]
PEERS = Path(__file__).parents[2] / "cli" / "peers"
ANSWER = "The Eiffel Tower was built in 1989 in Paris."
RIGHT = "The Eiffel Tower was built in 1889 in Paris."


@pytest.fixture
def homes() -> Iterator[TraceHomes]:
    with living() as homes:
        yield homes


@pytest.fixture
def run(spanlab: Run) -> Run:
    return partial(spanlab, **KEYS)


@pytest.fixture
def push(run: Run, homes: TraceHomes) -> Run:
    """Push what ``offline`` says of the dataset ``mine``."""

    def push(to: str, *more: str, **changes: str) -> subprocess.CompletedProcess[str]:
        words = ("--to", to, "--annotator", "offline", "--url", f"{homes.url}/")
        return run("push", "mine", *words, *more, **changes)

    return push


def traced(number: int, answer: str, **meta: object) -> dict[str, Any]:
    ids = {"trace_id": f"{number:032x}", "span_id": f"{number:016x}"}
    about = {**ids, "time": f"2026-11-0{number}T10:00:00+00:00", **meta}
    return {"id": f"item-{number}", "answer": answer, "passages": [RIGHT], "meta": about}


@pytest.fixture
def mine(run: Run, write: Write, tmp_path: Path, homes: TraceHomes) -> None:
    """A dataset of two traces, a wrong answer and a right one, which live in all three programs."""
    annotated(run, write(tmp_path / "traced.jsonl", traced(1, ANSWER), traced(2, RIGHT)))
    homes.known |= {f"{n:016x}" for n in (1, 2)} | {f"{n:032x}" for n in (1, 2)}
    homes.known |= {f"tr-{n:032x}" for n in (1, 2)}


def annotated(run: Run, file: Path) -> None:
    done = run("import", file, "--dataset", "mine")
    assert done.returncode == 0, done.stderr
    assert run("annotate", "mine", "--detector", "offline").returncode == 0


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("to", ["phoenix", "langfuse", "langfuse of lists", "mlflow"])
def test_each_traced_item_gets_one_score_with_its_spans_however_often_it_is_pushed(
    push: Run, homes: TraceHomes, to: str
) -> None:
    homes.takes_list = to.endswith("lists")
    to = to.split(maxsplit=1)[0]
    for _ in range(2):
        done = push(to)
        assert (done.returncode, done.stderr.splitlines()) == (
            0,
            [f"pushed verdicts of offline on 2 items to {to}"],
        )
    wrong, right = stored(homes, to)
    assert wrong["score"] == pytest.approx(4 / len(ANSWER))
    assert (wrong["label"], right["label"]) == ("hallucinated", "clean")
    assert wrong["explanation"].startswith("“1989”: ")
    (span,) = wrong["spans"]
    assert span["text"] == ANSWER[span["start"] : span["end"]] == "1989"
    assert span["prob"] > 0.5
    assert (right["score"], right["spans"]) == (0, [])
    assert [each["item"] for each in (wrong, right)] == ["item-1", "item-2"]
    assert [each["at"] for each in (wrong, right)] == [f"{n:016x}" for n in (1, 2)]
    assert {each["kind"] for each in (wrong, right)} <= {"CODE", None}


def stored(homes: TraceHomes, to: str) -> list[dict[str, Any]]:
    """Return what a program has, by one set of names, the items in order."""
    found = []
    for each in homes.annotations.values():
        assert each["identifier"] == "spanlab:offline"
        metadata = {**each["metadata"], **each["result"], "kind": each["annotator_kind"]}
        found.append({**metadata, "at": each["span_id"]})
    for each in homes.scores.values():
        about = {"score": each["value"], "explanation": each["comment"], "kind": None}
        assert each["observationId"] == each["traceId"][16:]
        found.append({**each["metadata"], **about, "at": each["observationId"]})
    for assessments in homes.assessments.values():
        (each,) = assessments
        about = {"score": each["feedback"]["value"], "explanation": each["rationale"]}
        about |= {"kind": each["source"]["source_type"], "at": each["span_id"]}
        spans = json.loads(each["metadata"]["spans"])
        found.append({**each["metadata"], **about, "spans": spans})
    return sorted(found, key=lambda each: str(each["at"]))


@pytest.mark.parametrize(
    ("to", "file"), [("phoenix", "phoenix_get_spans.json"), ("mlflow", "mlflow_trace.json")]
)
def test_the_ids_of_what_was_exported_there_are_known_there(
    run: Run, push: Run, homes: TraceHomes, tmp_path: Path, to: str, file: str
) -> None:
    copy = Path(shutil.copy(PEERS / file, tmp_path))
    annotated(run, copy)
    exported = json.loads(copy.read_text())
    if to == "phoenix":
        homes.known |= {span["context"]["span_id"] for span in exported}
    else:
        homes.known.add(exported["info"]["trace_id"])
    done = push(to)
    assert done.returncode == 0, done.stderr
    assert {each["label"] for each in stored(homes, to)} == {"hallucinated"}


@pytest.mark.parametrize("to", ["phoenix", "langfuse", "mlflow"])
def test_each_run_of_a_trace_gets_its_verdict_at_its_own_span(
    run: Run, push: Run, homes: TraceHomes, tmp_path: Path, to: str
) -> None:
    annotated(run, Path(shutil.copy(PEERS / "runs" / "parallel_runs_in_one_trace.json", tmp_path)))
    assert run("export", "mine", "-o", tmp_path / "runs.jsonl").returncode == 0
    items = [record.item for record in spanlab_package.load(tmp_path / "runs.jsonl")]
    about: dict[str, Any] = {item.id: item.meta for item in items}
    homes.known |= {meta["trace_id"] for meta in about.values()}
    homes.known |= {f"tr-{meta['trace_id']}" for meta in about.values()}
    homes.known |= {meta["span_id"] for meta in about.values()}
    for _ in range(2):
        done = push(to)
        assert done.returncode == 0, done.stderr
    given = {
        "phoenix": [(e["metadata"]["item"], e["span_id"]) for e in homes.annotations.values()],
        "langfuse": [(e["metadata"]["item"], e["observationId"]) for e in homes.scores.values()],
        "mlflow": [
            (each["metadata"]["item"], each["span_id"])
            for assessments in homes.assessments.values()
            for each in assessments
        ],
    }
    assert sorted(given[to]) == sorted((name, meta["span_id"]) for name, meta in about.items())
    assert len({meta["span_id"] for meta in about.values()}) == len(items) == 3
    changed = {call for call in homes.calls if call.startswith("PATCH")}  # each the one it made
    assert len(changed) == (3 if to == "mlflow" else 0)


def test_a_trace_of_langfuse_is_scored_at_its_root(
    run: Run, push: Run, homes: TraceHomes, write: Write, tmp_path: Path
) -> None:
    about = {"traceId": "t-1", "startTime": "2026-11-01T10:00:00Z", "input": "When?"}
    root = {**about, "id": "o-1", "type": "SPAN", "name": "rag", "output": ANSWER}
    call = {**about, "id": "o-2", "type": "GENERATION", "parentObservationId": "o-1"}
    annotated(run, write(tmp_path / "lf.jsonl", root, {**call, "output": ANSWER}))
    homes.known.add("t-1")
    done = push("langfuse")
    assert done.returncode == 0, done.stderr
    (score,) = homes.scores.values()
    assert (score["traceId"], score["observationId"]) == ("t-1", "o-1")


def test_items_without_a_trace_or_annotation_are_counted(
    run: Run, push: Run, homes: TraceHomes, write: Write, tmp_path: Path
) -> None:
    plain = {"id": "plain", "answer": ANSWER, "passages": [RIGHT]}
    annotated(run, write(tmp_path / "some.jsonl", traced(1, ANSWER), plain))
    assert run("import", write(tmp_path / "late.jsonl", traced(2, RIGHT)), "--dataset", "mine")
    homes.known.add(f"{1:016x}")
    done = push("phoenix")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "pushed verdicts of offline on 1 item to phoenix",
        "left out 1 item that came from no trace",
        "left out 1 item without a finished annotation",
    ]


@pytest.mark.usefixtures("mine")
def test_what_fails_is_told_with_status_and_reason(push: Run, homes: TraceHomes) -> None:
    homes.known.remove(f"{2:016x}")
    done = push("phoenix")
    assert done.returncode == 3
    assert "answers 404: “Spans with IDs 0000000000000002 do not exist.”" in done.stderr
    assert "1 item failed; item-2: 127.0.0.1:" in done.stderr
    homes.known.remove(f"tr-{1:032x}")
    assert "not found" in push("mlflow").stderr
    homes.known.clear()
    homes.takes_list = True
    done = push("langfuse")
    assert done.returncode == 1
    assert "2 items failed; item-1: " in done.stderr
    assert "no such trace" in done.stderr


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("to", ["phoenix", "langfuse", "mlflow"])
def test_a_wrong_key_ends_it_and_is_never_shown(push: Run, to: str) -> None:
    wrong = dict.fromkeys(KEYS, "some-other-key-of-somebody")
    done = push(to, **wrong)
    assert done.returncode == 1
    assert "answers 401" in done.stderr
    assert "check " in done.stderr
    assert "some-other-key" not in done.stderr
    pair = b64encode(b"some-other-key-of-somebody:some-other-key-of-somebody").decode()
    assert pair not in done.stderr and "[key]" in done.stderr


@pytest.mark.usefixtures("mine")
def test_failures_that_pass_are_tried_again_and_a_redirect_is_not_followed(
    push: Run, homes: TraceHomes
) -> None:
    homes.statuses = [503, 429]
    assert push("phoenix").returncode == 0
    assert len(homes.calls) == 4
    homes.statuses = [302, 302]
    done = push("phoenix")
    assert done.returncode == 1
    assert "answers 302" in done.stderr
    assert len(homes.calls) == 6
    homes.statuses = [500] * 6
    done = push("mlflow")
    assert done.returncode == 1
    assert "answers 500" in done.stderr
    assert KEYS["MLFLOW_TRACKING_TOKEN"] not in done.stderr


@pytest.mark.usefixtures("mine")
def test_a_server_that_is_slow_or_not_there_is_told(run: Run, push: Run, homes: TraceHomes) -> None:
    homes.delay = 20
    done = push("phoenix", "--timeout", "0.2")
    assert done.returncode == 1
    assert "did not answer within 0.2 s" in done.stderr
    nobody = ("--to", "phoenix", "--annotator", "offline", "--url", "http://127.0.0.1:9")
    assert "127.0.0.1:9 cannot be reached" in run("push", "mine", *nobody).stderr


def test_a_server_that_fails_again_and_again_is_left_alone(
    run: Run, push: Run, homes: TraceHomes, write: Write, tmp_path: Path
) -> None:
    many = [traced(1, ANSWER, span_id=f"{n:016x}") | {"id": f"i-{n}"} for n in range(1, 41)]
    annotated(run, write(tmp_path / "many.jsonl", *many))
    homes.statuses = [401] * 1000
    done = push("phoenix")
    assert done.returncode == 1
    assert "not tried: 127.0.0.1" in done.stderr
    assert len(homes.calls) < 20


@pytest.mark.usefixtures("mine")
def test_a_call_that_makes_no_sense_is_refused(run: Run) -> None:
    for words in (
        ("--to", "phoenix", "--annotator", "offline"),
        ("--to", "phoenix", "--url", "http://127.0.0.1:9"),
        ("org/mine", "--to", "phoenix", "--annotator", "offline", "--url", "http://127.0.0.1:9"),
        ("--to", "phoenix", "--annotator", "offline", "--url", "ftp://127.0.0.1"),
        ("--to", "phoenix", "--annotator", "offline", "--url", "http://me:key@127.0.0.1"),
        ("--to", "phoenix", "--annotator", "offline", "--url", "http://127.0.0.1/?key=1"),
        ("--to", "nowhere", "--annotator", "offline", "--url", "http://127.0.0.1:9"),
        (),
    ):
        assert run("push", "mine", *words).returncode == 2, words


@pytest.mark.usefixtures("mine")
def test_keys_that_lack_or_cannot_be_sent_are_named(run: Run, push: Run) -> None:
    done = push("langfuse", LANGFUSE_SECRET_KEY="")
    assert done.returncode == 2
    assert "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY" in done.stderr
    done = push("phoenix", PHOENIX_API_KEY="schlüssel-der-nicht-geht")
    assert done.returncode == 2
    assert "schlüssel" not in done.stderr
    words = ("--to", "phoenix", "--annotator", "nobody", "--url", "http://127.0.0.1:9")
    assert "no annotator 'nobody'" in run("push", "mine", *words).stderr


def test_an_event_names_the_trace_and_span_that_the_item_came_from(
    run: Run, write: Write, tmp_path: Path
) -> None:
    foreign = traced(2, RIGHT, trace_id="a trace of Langfuse", span_id="f" * 100)
    file = write(tmp_path / "traced.jsonl", traced(1, ANSWER), foreign)
    with receiving() as collector:
        words = ("annotate", file, "--detector", "offline", "-o", "out.jsonl", "--events")
        done = run(*words, stdout=subprocess.PIPE, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.returncode == 0, done.stderr
    found = [
        (record.trace_id.hex(), record.span_id.hex())
        for posted in collector.posted
        for resource in ExportLogsServiceRequest.FromString(posted.body).resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]
    assert found == [(f"{1:032x}", f"{1:016x}"), ("", "")]


def test_a_script_pushes_what_people_say(
    homes: TraceHomes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    homes.known |= {f"{1:016x}", f"tr-{1:032x}"}
    span = {"start": 30, "end": 34, "text": "1989", "prob": 1, "label": "date"}
    said = {"annotator": "anna", "kind": "person", "status": "done", "spans": [span]}
    records = spanlab_package.load([traced(1, ANSWER) | {"annotations": [said]}])
    report = spanlab_package.push(records, "anna", to="phoenix", url=homes.url)
    assert (report.pushed, report.failures) == (1, [])
    (annotation,) = homes.annotations.values()
    assert annotation["annotator_kind"] == "HUMAN"
    assert annotation["metadata"]["spans"] == [{**span, "prob": 1.0}]
    judged = {**said, "annotator": "ucsc-extract", "kind": "detector"}
    records = spanlab_package.load([traced(1, ANSWER) | {"annotations": [judged]}])
    assert spanlab_package.push(records, "ucsc-extract", to="mlflow", url=homes.url).pushed == 1
    ((assessment,),) = homes.assessments.values()
    assert assessment["source"] == {"source_type": "LLM_JUDGE", "source_id": "spanlab:ucsc-extract"}
    elsewhere: Any = "elsewhere"
    with pytest.raises(UsageError, match="'elsewhere'; they do to phoenix, langfuse, mlflow"):
        spanlab_package.push(records, "anna", to=elsewhere, url=homes.url)
    with pytest.raises(UsageError, match="address"):
        spanlab_package.push(records, "anna", to="phoenix", url="nowhere")


OTLP_SPAN = {
    "trace_id": "0" * 31 + "1",
    "span_id": "0" * 15 + "1",
    "name": "answer",
    "start_time_unix_nano": 1767225600000000000,
    "end_time_unix_nano": 1767225601000000000,
    "attributes": [
        {"key": "openinference.span.kind", "value": {"string_value": "LLM"}},
        {
            "key": "input.value",
            "value": {"array_value": None, "string_value": "When was it built?"},
        },
        {"key": "output.value", "value": {"string_value": ANSWER}},
    ],
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("form", ["spans", "spans/otlpv1"])
def test_a_page_of_phoenix_s_rest_api_is_imported_as_traces(
    run: Run, tmp_path: Path, form: str, indent: int | None
) -> None:
    spans = [OTLP_SPAN]
    if form == "spans":
        spans = json.loads((PEERS / "phoenix_get_spans.json").read_text("utf-8"))
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"data": spans, "next_cursor": None}, indent=indent), "utf-8")
    done = run("import", page, "--dataset", "mine")
    assert done.returncode == 0, done.stderr
    assert run("export", "mine", "-o", "out.jsonl").returncode == 0
    items = [record.item for record in spanlab_package.load(tmp_path / "out.jsonl")]
    assert [item.answer for item in items] == (
        ["It was built in 1989."] * 2 if form == "spans" else [ANSWER]
    )
    assert all(item.meta["span_id"] for item in items)


def test_a_page_of_something_else_is_no_trace(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"data": [{"answer": "Oslo."}], "next_cursor": "x"}), "utf-8")
    done = run("import", page, "--dataset", "mine")
    assert (done.returncode, "answer → answer; next_cursor → left out" in done.stderr) == (
        0,
        True,
    ), done.stderr

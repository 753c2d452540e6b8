"""What detectors say goes to a collector of OpenTelemetry, if that is asked for."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forks import run_code, run_forked
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from receiver import Receiver, receiving

from spanlab.schema import Span

Run = Callable[..., subprocess.CompletedProcess[str]]
Write = Callable[..., Path]
TRACE = "0123456789abcdef0123456789abcdef"
ANSWER = "The tower was built in 1989 by Ada Smith in Paris."
PASSAGE = "The tower was built in 1889 by Gustave Eiffel in Paris."


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def run(tmp_path: Path, collector: Receiver) -> Run:
    """Run `spanlab` in a process of its own: when it ends, it sends what is left."""
    ours = {"SPANLAB_HOME": str(tmp_path / "home"), "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}

    def run(*arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
        command = ["spanlab", *map(str, arguments)]
        return run_forked(command, {**os.environ, **ours, **changes}, tmp_path)

    return run


@pytest.fixture
def answers(write: Write, tmp_path: Path) -> Path:
    wrong = {"id": TRACE, "answer": ANSWER, "passages": [{"text": PASSAGE}]}
    right = {"id": "right", "answer": PASSAGE, "passages": [{"text": PASSAGE}]}
    return write(tmp_path / "answers.jsonl", wrong, right)


def events(collector: Receiver) -> list[dict[str, Any]]:
    """Return the attributes of all events, with name and trace."""
    found = []
    for posted in collector.posted:
        assert posted.path == "/v1/logs"
        request = ExportLogsServiceRequest.FromString(posted.body)
        for resource in request.resource_logs:
            named = {each.key: each.value.string_value for each in resource.resource.attributes}
            assert named["service.name"] == "spanlab"
            for record in (each for scope in resource.scope_logs for each in scope.log_records):
                values = {
                    each.key: each.value.string_value or each.value.double_value
                    for each in record.attributes
                }
                found.append({**values, "event": record.event_name, "trace": record.trace_id.hex()})
    return found


def test_each_annotation_is_an_event_with_score_offsets_and_explanation(
    run: Run, answers: Path, collector: Receiver
) -> None:
    detect = ("annotate", answers, "--detector", "offline", "-o", "out.jsonl")
    assert run(*detect).returncode == 0
    assert collector.posted == []  # off unless asked for
    done = run(*detect, "--events")
    assert done.returncode == 0, done.stderr
    wrong, right = events(collector)
    assert wrong["event"] == "gen_ai.evaluation.result"
    assert (wrong["trace"], right["trace"]) == (TRACE, "")
    assert (wrong["spanlab.annotator"], wrong["spanlab.item"]) == ("offline", TRACE)
    assert wrong["gen_ai.evaluation.score.label"] == "hallucinated"
    spans = [Span.model_validate(each) for each in json.loads(wrong["spanlab.spans"])]
    assert spans[0].text == ANSWER[spans[0].start : spans[0].end] == "1989"
    hard = sum(span.end - span.start for span in spans if span.prob > 0.5)
    assert wrong["gen_ai.evaluation.score.value"] == pytest.approx(hard / len(ANSWER))
    assert "“1989”: " in wrong["gen_ai.evaluation.explanation"]
    assert (right["gen_ai.evaluation.score.label"], right["spanlab.spans"]) == ("grounded", "[]")


def test_a_job_over_a_dataset_sends_them_too(
    run: Run, answers: Path, collector: Receiver, model_server: Any
) -> None:
    assert run("import", answers, "--dataset", "mine").returncode == 0
    failing = {"OPENAI_BASE_URL": model_server.url, "OPENAI_API_KEY": "k", "SPANLAB_MODEL": "m"}
    detectors = ("--detector", "offline", "--detector", "ucsc-extract")
    done = run("annotate", "mine", *detectors, "--events", **failing)
    assert done.returncode == 3, done.stderr
    found = events(collector)
    assert (
        sorted(each["spanlab.annotator"] for each in found)
        == ["offline"] * 2 + ["ucsc-extract"] * 2
    )
    failed = next(each for each in found if each["spanlab.annotator"] == "ucsc-extract")
    assert failed["error.type"] == "_OTHER"
    assert failed["gen_ai.evaluation.explanation"]


def test_no_collector_is_an_error_before_and_none_that_answers_ends_no_run(
    run: Run, answers: Path, tmp_path: Path
) -> None:
    detect = ("annotate", answers, "--detector", "offline", "-o", "out.jsonl", "--events")
    refused = run(*detect, OTEL_EXPORTER_OTLP_ENDPOINT="")
    assert refused.returncode == 2
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in refused.stderr
    assert not (tmp_path / "out.jsonl").exists()
    nobody = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    assert run(*detect, **nobody).returncode == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


def test_a_script_asks_for_them_by_a_keyword(run: Run, collector: Receiver, tmp_path: Path) -> None:
    code = (
        "import spanlab\n"
        f"rows = [{{'answer': {ANSWER!r}, 'passages': [{PASSAGE!r}]}}]\n"
        "def year(item): return [(23, 27)]\n"
        "spanlab.annotate(spanlab.load(rows), ['offline', year], events=True)\n"
    )
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "SPANLAB_HOME": str(tmp_path)}
    done = run_code(code, environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert [each["spanlab.annotator"] for each in events(collector)] == ["offline", "year"]

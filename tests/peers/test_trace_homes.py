"""Phoenix and MLflow themselves: traces come from there, and verdicts go back."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from spanlab.schema import Record

ASKED = "When was the Eiffel Tower built?"
BUILT = "The Eiffel Tower was completed in 1889."
WRONG = "The Eiffel Tower was built in 1989."

Command = Callable[..., Any]
Annotated = Callable[[], Record]


Running = Callable[..., AbstractContextManager[str]]


def reply_of(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as reply:
        return json.loads(reply.read())


def check(record: Record) -> None:
    item = record.item
    assert (item.question, item.answer) == (ASKED, WRONG)
    assert [passage.text for passage in item.passages] == [BUILT]


@pytest.fixture
def phoenix(served: Running, tmp_path: Path) -> Iterator[str]:
    """Phoenix with a database in memory; yields its address."""
    pytest.importorskip("phoenix", reason="Phoenix is not installed")
    own = {
        "PHOENIX_GRPC_PORT": "0",
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": "{port}",
        "PHOENIX_SQL_DATABASE_URL": "sqlite:///:memory:",
        "PHOENIX_WORKING_DIR": str(tmp_path),
    }
    with served(["phoenix", "serve"], "/healthz", **own) as url:
        yield url


@pytest.mark.parametrize("page", ["spans", "spans/otlpv1"])
def test_phoenix(
    phoenix: str, command: Command, annotated: Annotated, tmp_path: Path, page: str
) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{phoenix}/v1/traces")))
    tracer, kind = provider.get_tracer("pipeline"), "openinference.span.kind"
    around = {kind: "CHAIN", "input.value": ASKED, "output.value": WRONG}
    found = {kind: "RETRIEVER", "retrieval.documents.0.document.content": BUILT}
    said = {kind: "LLM", "input.value": f"{BUILT}\n{ASKED}", "output.value": WRONG}
    with tracer.start_as_current_span("rag", attributes=around):
        for name, attributes in (("search", found), ("answer", said)):
            with tracer.start_as_current_span(name, attributes=attributes):
                pass
    provider.shutdown()
    spans = f"{phoenix}/v1/projects/default/{page}"
    _wait(lambda: len(reply_of(spans)["data"]) == 3)
    Path(tmp_path, "page.json").write_text(json.dumps(reply_of(spans)), "utf-8")
    command("import", "page.json", "--dataset", "traces")
    record = annotated()
    check(record)
    span = record.item.meta["span_id"]
    kept = f"{phoenix}/v1/projects/default/span_annotations?span_ids={span}"
    for _ in range(2):  # pushed again, it replaces itself
        command("push", "traces", "--to", "phoenix", "--annotator", "offline", "--url", phoenix)
        (annotation,) = reply_of(kept)["data"]
    assert annotation["name"] == "hallucination"
    assert annotation["result"]["score"] == pytest.approx(len("1989") / len(WRONG))
    assert [each["text"] for each in annotation["metadata"]["spans"] if each["prob"] > 0.5] == [
        "1989"
    ]


@pytest.fixture
def mlflow_at(served: Running, tmp_path: Path) -> Iterator[str]:
    """An MLflow server; yields its address."""
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    words = ["mlflow", "server", "--host", "127.0.0.1", "--port", "{port}", "--workers", "1"]
    words += ["--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db"]
    with served(words, "/health") as url:
        yield url


def test_mlflow(mlflow_at: str, command: Command, annotated: Annotated, tmp_path: Path) -> None:
    import mlflow
    from mlflow.entities import SpanType

    mlflow.set_tracking_uri(mlflow_at)
    mlflow.set_experiment("rag")  # a test before may have set one that this server does not have
    with mlflow.start_span("rag", SpanType.CHAIN) as rag:
        rag.set_inputs({"question": ASKED})
        with mlflow.start_span("search", SpanType.RETRIEVER) as search:
            search.set_outputs([{"page_content": BUILT}])
        with mlflow.start_span("answer", SpanType.CHAT_MODEL) as answer:
            answer.set_inputs({"messages": [{"role": "user", "content": f"{BUILT}\n{ASKED}"}]})
            answer.set_outputs({"choices": [{"message": {"role": "assistant", "content": WRONG}}]})
        rag.set_outputs(WRONG)
    mlflow.flush_trace_async_logging()
    trace = mlflow.get_trace(rag.trace_id)
    Path(tmp_path, "trace.json").write_text(trace.to_json(), "utf-8")
    command("import", "trace.json", "--dataset", "traces")
    check(annotated())
    for _ in range(2):
        command("push", "traces", "--to", "mlflow", "--annotator", "offline", "--url", mlflow_at)
        (assessment,) = mlflow.get_trace(rag.trace_id).info.assessments
    assert assessment.name == "hallucination"
    assert assessment.feedback.value == pytest.approx(len("1989") / len(WRONG))
    assert "1989" in assessment.rationale


def _wait(done: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if done():
                return
        except urllib.error.HTTPError:  # no such project yet
            pass
        time.sleep(0.2)
    raise AssertionError("it did not come in time")

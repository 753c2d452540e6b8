"""What exporters of OpenTelemetry send to the service: spans, and messages apart from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from recorded_spans import RECORDED, recorded_spans
from starlette.testclient import TestClient

from spanlab.detection.selection import DetectorSelection
from spanlab.formats import read
from spanlab.integrations.api_jobs import ApiJobs
from spanlab.integrations.http_api import http_api
from spanlab.integrations.offers import ServiceOffers
from spanlab.integrations.traces import TraceInbox
from spanlab.schema import Item
from spanlab.storage import Store

KEY = "a-key-of-sixteen-characters"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
PRINTED = sorted([*RECORDED.glob("*.console.json*"), *RECORDED.glob("vercel-*")])


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path / "home"))
    with Store.open() as opened:
        yield opened


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    app = http_api(offers, ApiJobs(store, offers), KEY, traces=TraceInbox(store, "traced"))
    with TestClient(app, headers={"Authorization": f"Bearer {KEY}"}) as client:
        yield client


def post(client: TestClient, path: str, body: bytes) -> str:
    """Return what is said of a request that was taken."""
    sent = client.post(path, content=body, headers=PROTOBUF)
    assert sent.status_code == 200, sent.text
    reply = ExportTraceServiceResponse.FromString(sent.content).partial_success
    assert reply.rejected_spans == 0
    return str(reply.error_message)


def stored(store: Store) -> dict[str, Item]:
    return {record.item.id: record.item for record in store.records("traced")}


def test_what_programs_send_is_what_their_files_hold(client: TestClient, store: Store) -> None:
    """Each recording goes as protobuf, a request a span, the root last as exporters have it."""
    expected: dict[str, Item] = {}
    for file in PRINTED:
        for span in sorted(recorded_spans(file), key=lambda span: span.end_time or 0):
            told = post(client, "/v1/traces", encode_spans([span]).SerializeToString())
            assert told == "", file.name
        expected |= {record.item.id: record.item for record in read(file)}
    sent = stored(store)
    assert sent.keys() == expected.keys()
    for name, item in sent.items():
        assert item == expected[name]


class Calls:
    """What an instrumentation makes of a call whose messages are events of a log."""

    def __init__(self) -> None:
        self.logs: Any = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        self.spans = InMemorySpanExporter()
        logs, spans = LoggerProvider(), TracerProvider()
        logs.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        spans.add_span_processor(SimpleSpanProcessor(self.spans))
        said: list[tuple[str, Any]] = [
            ("system.message", {"content": "Be brief."}),
            ("user.message", {"content": "Who built it?"}),
            ("choice", {"index": 0, "message": {"role": "assistant", "content": "Eiffel did."}}),
        ]
        tracer, logger = spans.get_tracer("app"), logs.get_logger("app")
        about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
        with tracer.start_as_current_span("rag"):
            with tracer.start_as_current_span("chat m", attributes=about):
                for name, body in said:
                    logger.emit(event_name=f"gen_ai.{name}", body=body)
            logger.emit(body="a line of a log")

    def requests(self) -> list[tuple[str, bytes]]:
        logs = encode_logs(self.logs.get_finished_logs()).SerializeToString()
        spans = encode_spans(self.spans.get_finished_spans()).SerializeToString()
        return [("/v1/logs", logs), ("/v1/traces", spans)]


@pytest.mark.parametrize("order", [[0, 1], [1, 0], [0, 0, 1], [1, 1, 0]])
def test_messages_that_are_log_events_are_joined_to_their_calls(
    client: TestClient, store: Store, order: list[int]
) -> None:
    requests = Calls().requests()
    told = [post(client, *requests[n]) for n in order]
    assert told[-1] == ""
    (item,) = stored(store).values()
    assert (item.question, item.answer, item.meta["model"]) == ("Who built it?", "Eiffel did.", "m")


def test_calls_without_a_text_are_told_with_what_would_bring_it(
    client: TestClient, store: Store
) -> None:
    _, spans = Calls().requests()
    told = post(client, *spans)
    assert told.startswith("1 trace made no item")
    assert "1 model call without a text" in told
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only" in told
    assert client.post("/v1/metrics", json={}).status_code == 404
    assert client.post("/v1/logs", json={"resourceLogs": [1]}).status_code == 400
    line = {"timeUnixNano": "1", "body": {"stringValue": "up"}}
    other = {"resourceLogs": [{"scopeLogs": [{"logRecords": [line]}]}]}
    assert [client.post("/v1/logs", json=logs).status_code for logs in ({}, other)] == [404, 404]
    assert store.datasets() == []

"""What exporters of OpenTelemetry send to the service: spans, and messages apart from them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from recorded_spans import RECORDED, recorded_spans, values_in
from starlette.testclient import TestClient

from spanlab.detection.selection import DetectorSelection
from spanlab.formats import ReadOptions, read
from spanlab.integrations import traces, waiting
from spanlab.integrations.api_jobs import ApiJobs
from spanlab.integrations.http_api import http_api
from spanlab.integrations.offers import ServiceOffers
from spanlab.integrations.traces import TraceInbox
from spanlab.schema import Annotation, AnnotatorKind, Item
from spanlab.storage import Store
from spanlab.traces.runs import runs_of
from spanlab.traces.span_files import placed_spans
from spanlab.worklists import plans

KEY = "a-key-of-sixteen-characters"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
OTHER = "openinference-lcel.console"
RUNS = RECORDED.parent / "runs"


def _is_printed(file: Path) -> bool:
    """Say whether a file has spans as the SDK prints them, which it can send."""
    return '"context"' in file.read_text("utf-8")[:300]


NO_TRACES = ("retriever_only", "hf_sequence_of_spans")  # a search alone makes no item
FILES = [
    path
    for folder in (RECORDED, RUNS)
    for path in sorted(folder.glob("*.json*"))
    if "expected" not in path.name and path.stem not in NO_TRACES
]


@pytest.fixture
def inbox(store: Store) -> Iterator[TraceInbox]:
    inbox = TraceInbox(store, "traced")
    yield inbox
    inbox.close()


@pytest.fixture
def client(store: Store, inbox: TraceInbox) -> Iterator[TestClient]:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    app = http_api(offers, ApiJobs(store, offers), KEY, rate=10**6, traces=inbox)
    with TestClient(app, headers={"Authorization": f"Bearer {KEY}"}) as client:
        yield client


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Any:
    own = logging.Logger("inbox")  # as servers of other tests change the common one
    own.addHandler(caplog.handler)
    monkeypatch.setattr(traces, "_LOG", own)
    return caplog


def post(client: TestClient, path: str, body: bytes) -> str:
    """Return what is said of a request that was taken."""
    sent = client.post(path, content=body, headers=PROTOBUF)
    assert sent.status_code == 200, sent.text
    reply = ExportTraceServiceResponse.FromString(sent.content).partial_success
    assert reply.rejected_spans == 0
    return str(reply.error_message)


def stored(store: Store) -> dict[str, Item]:
    return {record.item.id: record.item for record in store.records("traced")}


def _sent(file: Path) -> list[Any]:
    """The spans of a file as they end, or the requests of it, each with one of its spans."""
    if _is_printed(file):
        return sorted(recorded_spans(file), key=lambda span: span.end_time or 0)
    return [source for value in values_in(file) for _, source in placed_spans(value)]


def _interleaved(file: Path) -> list[Any]:
    """What is sent of a file with what is of another one between it."""
    other = _sent(RECORDED / "openinference-lcel.console.json")
    pairs = zip_longest(_sent(file), other if file.stem not in OTHER else [])
    return [span for pair in pairs for span in pair if span is not None]


ORDERS: dict[str, Callable[[Path], list[Any]]] = {
    "reversed": lambda file: _sent(file)[::-1],
    "interleaved": _interleaved,
}


@pytest.mark.parametrize("order", ORDERS)
def test_what_programs_send_is_what_their_files_hold(
    client: TestClient, store: Store, inbox: TraceInbox, order: str
) -> None:
    """Each recording goes as protobuf, else as JSON, a request a span, in any order.

    As its spans end it goes with another one between them.
    """
    expected: dict[str, Item] = {}
    for file in FILES:
        for span in ORDERS[order](file):
            if isinstance(span, ReadableSpan):
                post(client, "/v1/traces", encode_spans([span]).SerializeToString())
            else:
                sent = client.post("/v1/traces", json=span)
                said = sent.json().get("partialSuccess", {"rejectedSpans": "0"})
                assert (sent.status_code, said["rejectedSpans"]) == (200, "0"), file
        inbox.settle(quiet=0)
        records = read(file, ReadOptions(on_warning=lambda _: None))  # of runs that failed
        expected |= {record.item.id: record.item for record in records}
    items = stored(store)
    assert items.keys() == expected.keys()
    for name, item in items.items():
        assert item.model_copy(update={"lang": "und"}) == expected[name]  # a file's has one guess


class Calls:
    """What an instrumentation makes of a call whose messages are events of a log."""

    def __init__(self, *, in_attributes: bool = False) -> None:
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
                    if in_attributes:  # as Semantic Kernel does by Python's logging
                        about = {"event.name": f"gen_ai.{name}", "gen_ai.system": "openai"}
                        logger.emit(body=json.dumps(body), attributes=about)
                    else:
                        logger.emit(event_name=f"gen_ai.{name}", body=body)
            logger.emit(body="a line of a log")

    def requests(self) -> list[tuple[str, bytes]]:
        logs = encode_logs(self.logs.get_finished_logs()).SerializeToString()
        spans = encode_spans(self.spans.get_finished_spans()).SerializeToString()
        return [("/v1/logs", logs), ("/v1/traces", spans)]


@pytest.mark.parametrize("in_attributes", [False, True])
@pytest.mark.parametrize("order", [[0, 1], [1, 0], [0, 0, 1], [1, 1, 0]])
def test_messages_that_are_log_events_are_joined_to_their_calls(
    client: TestClient, store: Store, inbox: TraceInbox, order: list[int], in_attributes: bool
) -> None:
    requests = Calls(in_attributes=in_attributes).requests()
    for n in order:
        post(client, *requests[n])
    inbox.settle(quiet=0)
    (item,) = stored(store).values()
    assert (item.question, item.answer, item.meta["model"]) == ("Who built it?", "Eiffel did.", "m")


def test_messages_of_a_chat_that_come_in_any_order_are_read_as_they_were_said(
    client: TestClient, store: Store, inbox: TraceInbox
) -> None:
    """Records of a log, a request each, the last first."""
    calls, said = Calls(), ("Who built it?", "Who do you mean?", "And when?")
    (call,) = (span for span in calls.spans.get_finished_spans() if span.name == "chat m")
    assert call.context
    for at in reversed(range(3)):
        role = "assistant" if at % 2 else "user"
        body = {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": said[at]}}]}}
        record = {
            "timeUnixNano": str(at + 1),
            "traceId": f"{call.context.trace_id:032x}",
            "spanId": f"{call.context.span_id:016x}",
            "eventName": f"gen_ai.{role}.message",
            "body": body,
        }
        sent = client.post(
            "/v1/logs", json={"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
        )
        assert sent.status_code == 200, sent.text
    post(client, *calls.requests()[1])
    choice = calls.logs.get_finished_logs()[2:3]
    post(client, "/v1/logs", encode_logs(choice).SerializeToString())
    inbox.settle(quiet=0)
    (item,) = stored(store).values()
    assert (item.question, item.answer) == ("And when?", "Eiffel did.")


def test_calls_without_a_text_are_told_with_what_would_bring_it(
    client: TestClient, store: Store
) -> None:
    _, spans = Calls().requests()
    told = post(client, *spans)
    assert told.startswith("1 trace made no item so far")
    assert "1 model call without a text" in told
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only" in told
    assert client.post("/v1/metrics", json={}).status_code == 404
    assert client.post("/v1/logs", json={"resourceLogs": [1]}).status_code == 400
    line = {"timeUnixNano": "1", "body": {"stringValue": "up"}}
    other = {"resourceLogs": [{"scopeLogs": [{"logRecords": [line]}]}]}
    assert [client.post("/v1/logs", json=logs).status_code for logs in ({}, other)] == [404, 404]
    assert client.post("/v1/traces", json={}).json() == {}  # OTLP allows one without spans
    wrong = client.post("/v1/traces", json={"nothing": 1})
    assert wrong.status_code == 400
    assert 'such as {"resourceSpans": […]}' in wrong.json()["error"]
    assert store.datasets() == []


def otlp(name: str, parent: str, at: int, **attributes: str) -> dict[str, Any]:
    """A request of one span, as JSON."""
    named = {name.replace("__", "."): text for name, text in attributes.items()}
    pairs = [{"key": name, "value": {"stringValue": text}} for name, text in named.items()]
    span = {
        "traceId": "a" * 32,
        "spanId": name,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at + 5),
        "attributes": pairs,
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


ROOT = otlp("a1", "", 1, input__value="Who built it?", output__value="Eiffel did.")
CALL = otlp("a2", "a1", 2, openinference__span__kind="LLM", output__value="Eiffel did.")
KIND = {"openinference__span__kind": "RETRIEVER"}
KIND_OF_CALL = {"openinference__span__kind": "LLM"}
FOUND = otlp("a3", "a1", 1, **KIND, retrieval__documents='["Built in 1889."]')


def test_steps_that_come_before_what_joins_them_make_no_item(
    store: Store, inbox: TraceInbox
) -> None:
    """Two calls look like two runs until the one comes that reads what both said."""
    read = {"openinference__span__kind": "LLM"}
    notes = ("Notes of A: it was begun in 1887.", "Notes of B: it was done in 1889.")
    calls = [
        otlp(f"b{n}", "b0", n, **read, input__value=f"Take notes of part {n}.", output__value=said)
        for n, said in enumerate(notes, 1)
    ]
    asked = "\n".join((*notes, "Question: Who built it?"))
    last = otlp("b3", "b0", 9, **read, input__value=asked, output__value="Eiffel did.")
    for request in (otlp("b0", "", 0), *calls):
        inbox.add(request)
    assert store.datasets() == []
    inbox.add(last)
    inbox.settle(quiet=0)
    (item,) = stored(store).values()
    assert (item.id, item.question, item.answer) == ("a" * 32, "Who built it?", "Eiffel did.")


def test_an_item_whose_run_became_a_step_stays_with_a_remark(
    store: Store, inbox: TraceInbox, log: pytest.LogCaptureFixture
) -> None:
    read = {"openinference__span__kind": "LLM"}
    notes = [f"Notes: part {n} was done in {1886 + n}." for n in range(1, 7)]
    calls = [
        otlp(f"c{n}", "c0", n, **read, input__value=f"Take notes of part {n}.", output__value=said)
        for n, said in enumerate(notes, 1)
    ]
    for request in (otlp("c0", "", 0), *calls):
        inbox.add(request)
    inbox.settle(quiet=0)
    assert [item.answer for item in stored(store).values()] == notes
    # It begins before the last two calls end: they are runs of their own, and keep their items.
    asked = "\n".join([*notes, "Question: When was it done?"])
    inbox.add(otlp("c7", "c0", 9, **read, input__value=asked, output__value="In 1889."))
    inbox.settle(quiet=0)
    assert [item.answer for item in stored(store).values()] == ["In 1889.", *notes[1:]]
    assert f"item {'a' * 32}-2 stays" in log.text


def test_a_span_that_comes_late_revises_the_item(store: Store, inbox: TraceInbox) -> None:
    for request in (CALL, ROOT):
        inbox.add(request)
    (item,) = stored(store).values()
    assert (item.question, item.passages) == ("Who built it?", ())
    inbox.add(FOUND)
    assert not stored(store)[item.id].passages  # more may come
    inbox.settle(quiet=0)
    (revised,) = stored(store).values()
    texts = [passage.text for passage in revised.passages]
    assert (revised.id, texts) == (item.id, ["Built in 1889."])


def reply(client: TestClient, request: dict[str, Any]) -> str:
    """Return what is said of a request that was taken, sent as JSON."""
    sent = client.post("/v1/traces", json=request)
    assert sent.status_code == 200, sent.text
    return str(sent.json().get("partialSuccess", {"errorMessage": ""})["errorMessage"])


def test_a_span_that_comes_after_a_detector_revises_the_item_and_removes_what_that_said(
    client: TestClient, store: Store, inbox: TraceInbox, log: pytest.LogCaptureFixture
) -> None:
    for request in (CALL, ROOT):
        assert reply(client, request) == ""
    (item,) = stored(store).values()
    said = Annotation(annotator="offline", kind=AnnotatorKind.DETECTOR)
    store.save_annotations("traced", [(item.id, said)])
    assert reply(client, FOUND) == ""
    inbox.settle(quiet=0)
    (record,) = store.records("traced")
    assert [passage.text for passage in record.item.passages] == ["Built in 1889."]
    assert record.annotations == ()
    assert f"item {item.id} was changed by later spans, and lost 1 annotation" in log.text
    store.save_annotations("traced", [(item.id, said)])
    assert reply(client, otlp("a4", "a1", 3, url="https://localhost")) == ""
    inbox.settle(quiet=0)
    (record,) = store.records("traced")  # nothing that it reads has changed
    assert [each.annotator for each in record.annotations] == ["offline"]


def test_a_verdict_on_the_answer_takes_its_place_neither_with_it_nor_late(
    client: TestClient, store: Store, inbox: TraceInbox
) -> None:
    said = "It was built by the company of Gustave Eiffel in Paris."
    asks = f"Is this answer polite? Answer yes or no.\n\n{said}"
    answer = otlp("b2", "b1", 2, **KIND_OF_CALL, input__value="Who built it?", output__value=said)
    verdict = otlp("b3", "b1", 9, **KIND_OF_CALL, input__value=asks, output__value="yes")
    for requests in ((answer, verdict, otlp("b1", "", 1)), (answer, otlp("b1", "", 1), verdict)):
        for request in requests:
            name = "a" * 32 if requests[1] is verdict else "b" * 32
            assert reply(client, json.loads(json.dumps(request).replace("a" * 32, name))) == ""
        inbox.settle(quiet=0)
    items = stored(store).values()
    assert [(item.question, item.answer) for item in items] == [("Who built it?", said)] * 2


@pytest.mark.parametrize("way", ["annotated", "opened"])
def test_a_span_that_comes_after_a_person_revises_nothing_and_the_reply_says_so(
    client: TestClient, store: Store, inbox: TraceInbox, log: pytest.LogCaptureFixture, way: str
) -> None:
    for request in (CALL, ROOT):
        inbox.add(request)
    (item,) = stored(store).values()
    if way == "annotated":
        said = Annotation(annotator="Ada", kind=AnnotatorKind.PERSON)
        store.save_annotations("traced", [(item.id, said)])
    else:
        store.change_settings("traced", lambda now: now.model_copy(update={"overlap": 2}))
        plans.reserve(store, "traced", item.id, "Ada")
    told = "stayed as annotated or opened by a person, without the spans that came later"
    assert reply(client, FOUND) == f"1 item {told}: {item.id}"
    inbox.settle(quiet=0)
    assert stored(store) == {item.id: item}
    assert f"item {item.id} {told}" in log.text


@pytest.mark.parametrize(
    ("question", "answer", "lang"),
    [
        ("Who built it?", "It was built by the engineers of a company in Paris.", "en"),
        ("Wer hat ihn gebaut?", "Er wurde von den Ingenieuren einer Firma gebaut.", "de"),
        ("いつですか?", "1889年に完成しました。", "ja"),
        ("1889?", "Eiffel.", "und"),
    ],
)
def test_the_language_is_guessed_from_what_was_asked_and_said(
    client: TestClient, store: Store, question: str, answer: str, lang: str
) -> None:
    assert (
        reply(
            client, otlp("a1", "", 1, **KIND_OF_CALL, input__value=question, output__value=answer)
        )
        == ""
    )
    assert [item.lang for item in stored(store).values()] == [lang]


def run(number: int) -> list[dict[str, Any]]:
    """The requests of a run inside the span a0, which began later than those of smaller numbers."""
    said = {"input__value": f"Who built number {number}?", "output__value": f"Eiffel did {number}."}
    call = {"openinference__span__kind": "LLM", "output__value": said["output__value"]}
    name, at = f"r{number}", 2 * number
    return [otlp(f"c{number}", name, at + 1, **call), otlp(name, "a0", at, **said)]


def test_a_run_that_comes_late_is_an_item_of_its_own(store: Store, inbox: TraceInbox) -> None:
    """The first one gets the id that it has in a file of the whole trace."""
    for request in (*run(1), otlp("a0", "", 1)):
        inbox.add(request)
    assert list(stored(store)) == ["a" * 32]
    for request in run(2):
        inbox.add(request)
    inbox.settle(quiet=0)
    assert sorted(stored(store)) == [f"{'a' * 32}-1", f"{'a' * 32}-2"]


def test_a_run_that_comes_late_and_began_first_takes_nobodys_item(
    store: Store, inbox: TraceInbox
) -> None:
    """Runs are numbered by time: the items of the others are found by their roots."""
    for request in (*run(2), *run(3), otlp("a0", "", 1)):
        inbox.add(request)
    inbox.settle(quiet=0)
    said = Annotation(annotator="offline", kind=AnnotatorKind.DETECTOR)
    store.save_annotations("traced", [("a" * 32 + "-1", said)])
    for request in run(1):
        inbox.add(request)
    inbox.settle(quiet=0)
    assert {name[-2:]: item.answer for name, item in stored(store).items()} == {
        "-1": "Eiffel did 2.",
        "-3": "Eiffel did 3.",
        "-2": "Eiffel did 1.",
    }


def test_a_service_whose_caller_is_traced_elsewhere_makes_an_item(
    store: Store, inbox: TraceInbox
) -> None:
    """Its root's parent never comes: after a while it is read as it is, and its own root counts."""
    inbox.add(otlp("a1", "elsewhere", 1, input__value="Who built it?", output__value="Eiffel did."))
    inbox.add(CALL)
    assert store.datasets() == []
    inbox.settle()
    assert store.datasets() == []  # not quiet yet
    inbox.settle(quiet=0)
    assert [item.question for item in stored(store).values()] == ["Who built it?"]
    inbox.add(otlp("elsewhere", "", 0))
    inbox.settle(quiet=0)
    assert len(stored(store)) == 1


def test_quiet_traces_are_stored_by_themselves(store: Store) -> None:
    inbox = TraceInbox(store, "traced", settle=0.1)
    inbox.start()
    inbox.add(otlp("a1", "elsewhere", 1, input__value="Who built it?", output__value="Eiffel did."))
    inbox.add(CALL)
    until = time.monotonic() + 60
    while not store.datasets() and time.monotonic() < until:
        time.sleep(0.05)
    inbox.close()
    assert len(stored(store)) == 1


@pytest.mark.parametrize("at", ["Infinity", "-Infinity", "NaN", "null", '"soon"', "1e400"])
def test_a_time_that_is_none_costs_that_time_alone(
    client: TestClient, store: Store, at: str
) -> None:
    for request in (CALL, ROOT):
        body = json.dumps(request).replace('"1"', at).replace('"2"', at)
        assert client.post("/v1/traces", content=body.encode()).status_code == 200
    assert [item.answer for item in stored(store).values()] == ["Eiffel did."]


def test_a_part_that_is_sent_again_takes_no_more_room(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So one sender that repeats itself pushes out no other's halves."""
    monkeypatch.setattr(waiting, "_LARGEST", 2_500)
    inbox = TraceInbox(store, "traced")
    other = json.loads(json.dumps(CALL).replace("a" * 32, "b" * 32))
    for request in (CALL, *[other] * 20, ROOT):
        inbox.add(request)
    assert [item.answer for item in stored(store).values()] == ["Eiffel did."]
    inbox.close()


def test_a_waiting_trace_is_not_read_at_each_event(
    store: Store, inbox: TraceInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def read_runs(spans: Any) -> Any:
        reads.append(len(spans))
        return runs_of(spans)

    monkeypatch.setattr(traces, "runs_of", read_runs)
    calls = [otlp(f"c{n}", "a1", n, gen_ai__operation__name="chat") for n in range(50)]
    for request in [*calls, ROOT]:
        inbox.add(request)
    inbox.settle(quiet=0)
    assert reads == [51]

"""OpenTelemetry's traces, as exporters send them (OTLP over HTTP), into a dataset.

A trace is stored when its root span comes: exporters send what ends, and the root ends last. What
comes before waits in memory, what comes after is not added; a trace that comes twice is stored
once. Messages that instrumentations send as log events are joined to their spans; calls that came
without any wait for them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Mapping
from threading import Lock
from typing import Any, Final

from pydantic_core import from_json, to_json
from starlette.exceptions import HTTPException

from spanlab.base.errors import (
    InputError,
    NotOfferedError,
    UnderImportError,
    UnparsableAnswerError,
    UsageError,
    missing_package,
)
from spanlab.base.inbound import collected, reason_of
from spanlab.formats.known.runs import runs_of
from spanlab.formats.known.span_files import spans_in
from spanlab.formats.known.trace import MESSAGES
from spanlab.formats.known.traces import record_of
from spanlab.formats.reader import NoAnswer
from spanlab.integrations.gate import LARGEST
from spanlab.output.figures import counted
from spanlab.schema import Record, storable_escapes
from spanlab.storage import Store

# What exporters add to the endpoint they are told.
PATH: Final = "/v1/traces"
LOGS: Final = "/v1/logs"
PROTOBUF: Final = "application/x-protobuf"
_WAITING: Final = 64 * 2**20  # bytes of JSON of traces whose root has not come, together
_PAUSE: Final = 0.05  # seconds before the next look
_LOG = logging.getLogger(__name__)


class _Trace:
    """What has come of a trace so far, each part once: a batch may be sent again."""

    def __init__(self) -> None:
        self.parts: dict[Any, dict[str, Any]] = {}  # spans by their ids, and messages of logs
        self.size = 0  # bytes
        self.is_whole = False  # whether the root is there

    def add(self, part: dict[str, Any]) -> None:
        packed = to_json(part)
        self.parts[packed if "event" in part else str(part["id"])] = part
        self.size += len(packed)
        self.is_whole |= not part["parent"]


class TraceInbox:
    """Collects spans until their traces are complete, and stores these as records.

    Args:
        store: the annotation database.
        dataset: the dataset that gets the answers; it is made when the first one comes.
        patience: seconds that an import of another process into the dataset is waited for.
    """

    def __init__(self, store: Store, dataset: str, patience: float = 20) -> None:
        self._store, self._dataset, self._patience = store, dataset, patience
        self._waiting: dict[str, _Trace] = {}  # the trace that came first is first
        self._lock, self._storing = Lock(), Lock()

    def add(self, request: object, path: str = PATH) -> tuple[int, str]:
        """Add the spans of a request, and store the traces whose root is among them.

        Args:
            request: the request as OTLP's JSON.
            path: where it was sent to.

        Returns:
            How many spans are rejected, and why; or 0 and what to say of traces that hold no
            model's answer, which is no error.

        Raises:
            UsageError: the request is none of OTLP's.
            NotOfferedError: logs hold no message of a model call, and no others are kept.
            StoreError: nothing was stored; the same request may be sent again.
        """
        try:
            parts = list(spans_in(request)) if request or path == PATH else []
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise UsageError(f"no request of OTLP: {reason_of(error)}") from None
        if path == LOGS and not parts:  # exporters send none of this again
            raise NotOfferedError("logs are kept only if they hold messages of model calls")
        with self._lock:
            for part in parts:
                self._waiting.setdefault(str(part["trace"]), _Trace()).add(part)
            names = dict.fromkeys(str(part["trace"]) for part in parts)
            traces = {name: self._waiting[name] for name in names}
            whole = {n: list(trace.parts.values()) for n, trace in traces.items() if trace.is_whole}
            size = sum(trace.size for trace in self._waiting.values())
            while size > _WAITING:
                size -= self._waiting.pop(next(iter(self._waiting))).size
        return self._store_traces(whole)

    def _store_traces(self, traces: Mapping[str, list[dict[str, Any]]]) -> tuple[int, str]:
        """Store what is complete; reading takes its time, and holds up no other request.

        Where the database is away, or messages may come later as log events, traces go on waiting.
        """
        rejected, reason, empty, records, done = 0, "", 0, list[Record](), set(traces)
        for name, parts in traces.items():
            try:
                records += [record_of(run.spans, run.number) for run in runs_of(parts)]
            except NoAnswer as error:  # a health check, a call that failed, or what else there is
                empty, reason = empty + 1, reason or f"made no item: {error}"
                _LOG.info("trace without an answer: %s", error)
                done -= {name} if error.expected == MESSAGES else set()
            except (InputError, ValueError, TypeError, AttributeError) as error:
                rejected, reason = rejected + len(parts), reason_of(error)
        if records:
            with self._storing:  # one import into a dataset at a time
                self._import(records)
        with self._lock:
            for name in done:
                self._waiting.pop(name, None)
        return rejected, f"{counted(empty, 'trace')} {reason}" if empty and not rejected else reason

    def _import(self, records: list[Record]) -> None:
        """Store records, once no other process imports into the dataset."""
        until = time.monotonic() + self._patience
        while True:
            try:
                self._store.import_records(self._dataset, records, on_taken=lambda *_: None)
                return
            except UnderImportError:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)


async def read_request(body: AsyncIterator[bytes], path: str, kind: str, packed: str) -> object:
    """Read a request, and return it as OTLP's JSON.

    Args:
        body: the bytes as they were sent.
        path: where they were sent to.
        kind: the header Content-Type.
        packed: the header Content-Encoding.

    Raises:
        HTTPException: it is too large, or cannot be unpacked.
        UsageError: it cannot be read, or opentelemetry-proto is not installed.
    """
    try:
        raw = await collected(body, LARGEST, "the exporter", packed)
    except UnparsableAnswerError:
        words = f"the request is larger than {LARGEST:,} bytes, or cannot be unpacked"
        raise HTTPException(413, words) from None
    try:
        return from_json(storable_escapes(_as_json(raw, path) if is_protobuf(kind) else raw))
    except ValueError as error:
        raise UsageError(f"no request of OTLP: {reason_of(error)}") from None


def is_protobuf(kind: str) -> bool:
    """Say whether a header Content-Type is protobuf's; anything else is read as JSON."""
    return kind.partition(";")[0].strip().lower() == PROTOBUF


def _as_json(raw: bytes, path: str) -> bytes:
    try:
        from google.protobuf.json_format import MessageToJson
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
    except ModuleNotFoundError as error:
        raise missing_package("OTLP as protobuf", error.name, "otel") from None
    form: Any = logs.ExportLogsServiceRequest if path == LOGS else traces.ExportTraceServiceRequest
    try:
        return str(MessageToJson(form.FromString(raw), indent=None)).encode()
    except DecodeError as error:
        raise ValueError(str(error)) from None


def reply_to(rejected: int, reason: str, path: str, kind: str) -> bytes:
    """Return OTLP's reply to a request, as protobuf or JSON as its Content-Type was."""
    if is_protobuf(kind):  # in which the replies to traces and logs are the same bytes
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

        reply = service.ExportTraceServiceResponse()
        reply.partial_success.rejected_spans = rejected
        reply.partial_success.error_message = reason
        return bytes(reply.SerializeToString())
    unit = "LogRecords" if path == LOGS else "Spans"
    partial_success = {f"rejected{unit}": str(rejected), "errorMessage": reason}
    return to_json({"partialSuccess": partial_success} if reason else {})

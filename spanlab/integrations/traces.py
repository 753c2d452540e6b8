"""OpenTelemetry's traces, as exporters send them (OTLP over HTTP), into a dataset.

A trace is read once its root and all parents of its spans are there, or once nothing more of it has
come for a while: a service that another one calls has its root elsewhere. What comes later revises
the items that it made, unless somebody has annotated or opened them. A part that comes twice counts
once. Messages that instrumentations send as log events are joined to their spans; calls that came
without any wait for them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Sequence
from hashlib import sha256
from itertools import count
from threading import Lock, Timer
from typing import Any, Final

from pydantic_core import from_json, to_json
from starlette.exceptions import HTTPException

from spanlab.base.errors import (
    InputError,
    NotFoundError,
    NotOfferedError,
    StoreError,
    UnderImportError,
    UnparsableAnswerError,
    UsageError,
    missing_package,
)
from spanlab.base.inbound import collected, reason_of
from spanlab.formats.known.runs import runs_of
from spanlab.formats.known.span_files import spans_in
from spanlab.formats.known.traces import record_of
from spanlab.formats.reader import NoAnswer
from spanlab.integrations.gate import LARGEST
from spanlab.output.figures import counted
from spanlab.schema import Item, Record, storable_escapes
from spanlab.storage import Store

# What exporters add to the endpoint they are told.
PATH: Final = "/v1/traces"
LOGS: Final = "/v1/logs"
PROTOBUF: Final = "application/x-protobuf"
SETTLE: Final = 10.0  # seconds without a part after which a trace is read
_WAITING: Final = 64 * 2**20  # bytes that the parts of traces take in memory, together
_BESIDE: Final = 500  # bytes that a part takes there beside its JSON: its key, its places in sets
_PAUSE: Final = 0.05  # seconds before the next look
_LOG = logging.getLogger(__name__)


class _Trace:
    """What has come of a trace so far, packed, each part once: a batch may be sent again."""

    def __init__(self) -> None:
        self.parts: dict[str, bytes] = {}  # spans by their ids, messages of logs by what they are
        self.size = 0  # bytes
        self.came = 0.0  # when the last part did, in seconds of the clock
        self.is_new = False  # whether a part has come since it was read
        self.was_read = False
        self.items: dict[str, Item] = {}  # that are stored, by their ids
        self._missing = set[str]()  # parents that have not come
        self._has_root = False

    def add(self, part: dict[str, Any]) -> None:
        packed, name = to_json(part), str(part["id"])
        key = sha256(packed).hexdigest() if "event" in part else name
        before = self.parts.get(key)
        if before == packed:
            return
        self.parts[key] = packed
        self.size += len(packed) - len(before) if before else len(packed) + _BESIDE
        self.came, self.is_new = time.monotonic(), True
        if "event" not in part:
            parent = str(part["parent"] or "")
            self._has_root |= not parent
            self._missing.discard(name)
            self._missing |= {parent} - self.parts.keys() - {""}

    @property
    def is_complete(self) -> bool:
        """Whether the root is there, and the parent of every span."""
        return self._has_root and not self._missing

    def records(self) -> list[Record]:
        """Return the record of each run that has an answer.

        Raises:
            NoAnswer: no run has an answer.
        """
        records, problem = list[Record](), None
        for run in runs_of([from_json(part) for part in self.parts.values()]):
            try:
                records.append(record_of(run.spans, run.number))
            except NoAnswer as error:
                problem = error
        if problem and not records:
            raise problem
        return records


class TraceInbox:
    """Collects spans until their traces are complete or quiet, and stores these as records.

    Args:
        store: the annotation database.
        dataset: the dataset that gets the answers; it is made when the first one comes.
        patience: seconds that an import of another process into the dataset is waited for.
        settle: seconds without a part after which a trace is read as it is.
    """

    def __init__(
        self, store: Store, dataset: str, patience: float = 20, settle: float = SETTLE
    ) -> None:
        self._store, self._dataset, self._patience = store, dataset, patience
        self._settle = settle
        self._timer: Timer | None = None
        self._waiting: dict[str, _Trace] = {}  # the trace that came first is first
        self._size = 0  # bytes of all of them
        self._lock, self._storing = Lock(), Lock()

    def add(self, request: object, path: str = PATH) -> tuple[int, str]:
        """Add the spans of a request, and store the traces that are complete with them.

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
        except (ValueError, TypeError, AttributeError, KeyError, ArithmeticError) as error:
            raise UsageError(f"no request of OTLP: {reason_of(error)}") from None
        if path == LOGS and not parts:  # exporters send none of this again
            raise NotOfferedError("logs are kept only if they hold messages of model calls")
        with self._lock:
            names = dict.fromkeys(str(part["trace"]) for part in parts)
            for part in parts:
                trace = self._waiting.setdefault(str(part["trace"]), _Trace())
                self._size -= trace.size
                trace.add(part)
                self._size += trace.size
            traces = [self._waiting[name] for name in names]
            ready = [trace for trace in traces if trace.is_complete and not trace.was_read]
            self._forget()
        try:
            return self._store_traces(ready)
        finally:
            self._wait()

    def settle(self, quiet: float | None = None) -> None:
        """Store the traces of which nothing has come for some seconds, ``settle`` by default."""
        until = time.monotonic() - (self._settle if quiet is None else quiet)
        with self._lock:
            self._timer = None
            ready = [t for t in self._waiting.values() if t.is_new and t.came <= until]
        try:
            self._store_traces(ready)
        except StoreError as error:
            _LOG.warning("traces wait on: %s", error)
        self._wait()

    def close(self) -> None:
        """Store what waits, and look no more for quiet traces."""
        self.settle(quiet=0)
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()

    def _wait(self) -> None:
        """Have quiet traces looked for in a while, if any may become so."""
        with self._lock:
            if self._timer is None and any(trace.is_new for trace in self._waiting.values()):
                self._timer = Timer(self._settle + _PAUSE, self.settle)
                self._timer.daemon = True
                self._timer.start()

    def _forget(self) -> None:
        """Drop the oldest traces while all take too much memory, those that were read first."""
        read = [name for name, trace in self._waiting.items() if not trace.is_new]
        for name in [*read, *self._waiting] if self._size > _WAITING else ():
            if self._size > _WAITING and name in self._waiting:
                self._size -= self._waiting.pop(name).size

    def _store_traces(self, traces: Sequence[_Trace]) -> tuple[int, str]:
        """Store what is complete; reading takes its time, and holds up no other request.

        Where the database is away, traces go on waiting.
        """
        rejected, reason, empty, kept = 0, "", 0, 0
        for trace in traces:
            trace.is_new, trace.was_read = False, True
            try:
                kept += self._store_records(trace, trace.records())
            except NoAnswer as error:  # a health check, a call that failed, or what else there is
                empty, reason = empty + 1, reason or f"made no item: {error}"
                _LOG.info("trace without an answer: %s", error)
            except StoreError:
                trace.is_new, trace.was_read = True, False
                raise
            except (InputError, ValueError, TypeError, AttributeError) as error:
                rejected, reason = rejected + len(trace.parts), reason_of(error)
        if empty and not rejected:
            return 0, f"{counted(empty, 'trace')} {reason}"
        if kept:
            reason = reason or f"{counted(kept, 'item')} stay as annotated; later spans are left"
            _LOG.info(reason)
        return rejected, reason

    def _store_records(self, trace: _Trace, records: Sequence[Record]) -> int:
        """Store the records of a trace, and return how many could not be revised.

        An item that is left as it is keeps its id, and its run makes no other item.
        """
        new, kept = {record.item.id: record.item for record in records}, 0
        with self._storing:  # one import into a dataset at a time
            for name, old in trace.items.copy().items():
                others = (item for other, item in new.items() if other not in trace.items)
                item = new.get(name) or next(others, old)
                if item == old or self._is_revised(name, item):
                    new.pop(item.id, None)
                    del trace.items[name]
                    trace.items[item.id] = item
                    continue
                kept += 1
                root = old.meta["span_id"]
                new = {n: other for n, other in new.items() if other.meta["span_id"] != root}
            if new:
                self._import([Record(item=item) for item in new.values()], trace)
        return kept

    def _is_revised(self, name: str, item: Item) -> bool:
        try:
            return self._store.revise_item(self._dataset, name, item)
        except NotFoundError:  # somebody removed it: it does not come back
            return True

    def _import(self, records: Sequence[Record], trace: _Trace) -> None:
        """Store records, once no other process imports into the dataset.

        A trace that was stored before this process began is left as it is.
        """

        def rename(_: int, record: Record) -> Record | None:
            if not trace.items:
                return None
            numbers = (f"{record.item.meta['trace_id']}-{n}" for n in count(1))
            name = next(name for name in numbers if name not in {*trace.items, record.item.id})
            return Record(item=record.item.model_copy(update={"id": name}))

        until = time.monotonic() + self._patience
        while True:
            try:
                self._store.import_records(self._dataset, records, on_taken=rename)
                trace.items |= {record.item.id: record.item for record in records}
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

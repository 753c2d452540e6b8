"""OpenTelemetry's traces, as exporters send them (OTLP over HTTP), into a dataset.

A trace is read once its root and all parents of its spans are there, or once nothing more of it has
come for a while: a service that another one calls has its root elsewhere, and several runs are told
apart once all is there. What comes later revises the items that it made, unless a person has
annotated or opened them: the reply and the log say so. What a detector said of other texts is
removed. Parts wait in the database (see ``waiting``), so that servers may split a trace, and a part
that comes twice counts once. Messages that instrumentations send as log events are joined to their
spans; calls that came without any wait for them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from itertools import count
from threading import Event, Lock, Thread
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
from spanlab.formats.reader import NoAnswer
from spanlab.integrations.gate import LARGEST
from spanlab.integrations.waiting import WaitingTrace, WaitingTraces
from spanlab.output.figures import counted, named_ids
from spanlab.schema import Item, Record, storable_escapes
from spanlab.storage import Store
from spanlab.text.languages import LanguageGuess
from spanlab.traces.reader import record_of
from spanlab.traces.runs import runs_of
from spanlab.traces.span_files import spans_in

# What exporters add to the endpoint they are told.
PATH: Final = "/v1/traces"
LOGS: Final = "/v1/logs"
PROTOBUF: Final = "application/x-protobuf"
SETTLE: Final = 10.0  # seconds without a part after which a trace is read
_PAUSE: Final = 0.05  # seconds before the next look at an import …
_LOOK: Final = 1.0  # … and, at most, at what has become quiet
_KEPT: Final = "stayed as annotated or opened by a person, without the spans that came later"
_LOG = logging.getLogger(__name__)


class TraceInbox:
    """Collects spans until their traces are complete or quiet, and stores these as records.

    Servers that share a database share what waits: each reads what is quiet, whoever took it in.

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
        self._waiting = WaitingTraces(store.database, dataset)
        self._storing, self._closed = Lock(), Event()
        self._looking = Thread(target=self._look, daemon=True)

    def start(self) -> None:
        """Look for quiet traces from now on, also for those of servers that are gone."""
        self._looking.start()

    def close(self) -> None:
        """Store what waits, and look no more for quiet traces."""
        self._closed.set()
        if self._looking.is_alive():
            self._looking.join()
        self.settle(quiet=0)

    def _look(self) -> None:
        while not self._closed.wait(min(self._settle, _LOOK) + _PAUSE):
            self.settle()

    def add(self, request: object, path: str = PATH) -> tuple[int, str]:
        """Add the spans of a request, and store the traces that are complete with them.

        Args:
            request: the request as OTLP's JSON.
            path: where it was sent to.

        Returns:
            How many spans are rejected, and why; or 0 and what to say of traces that hold no
            model's answer, or whose items stay as they are, which is no error.

        Raises:
            UsageError: the request is none of OTLP's.
            NotOfferedError: logs hold no message of a model call, and no others are kept.
            StoreError: nothing was stored; the same request may be sent again.
        """
        try:
            if not isinstance(request, dict):
                raise ValueError(f"it is not an object but {to_json(request).decode()}")
            parts = list(spans_in(request)) if request else []  # OTLP allows one without spans
        except (ValueError, TypeError, AttributeError, KeyError, ArithmeticError) as error:
            wanted = '{"resourceSpans": […]}' if path == PATH else '{"resourceLogs": […]}'
            why = f"{error} is missing" if isinstance(error, KeyError) else reason_of(error)
            raise UsageError(f"no request of OTLP, such as {wanted}: {why}") from None
        if path == LOGS and not parts:  # exporters send none of this again
            raise NotOfferedError("logs are kept only if they hold messages of model calls")
        ready, late = self._waiting.add(parts)
        rejected, reason = self._store_traces(ready, are_quiet=False)
        if kept := self._kept(late):
            reason = reason or f"{counted(len(kept), 'item')} {_KEPT}: {named_ids(kept)}"
        return rejected, reason

    def _kept(self, names: Collection[str]) -> list[str]:
        try:
            return self._store.kept_items(self._dataset, names) if names else []
        except NotFoundError:  # somebody removed the dataset
            return []

    def settle(self, quiet: float | None = None) -> None:
        """Store the traces of which nothing has come for some seconds, ``settle`` by default."""
        try:
            names = self._waiting.quiet(self._settle if quiet is None else quiet)
            self._store_traces(names, are_quiet=True)
        except StoreError as error:
            _LOG.warning("traces wait on: %s", error)

    def _store_traces(self, names: Iterable[str], *, are_quiet: bool) -> tuple[int, str]:
        """Store traces; reading takes its time, and holds up no other request.

        Traces of several runs wait until they are quiet: what is still on its way may be the step
        that makes one of two. Where the dataset or the database is away, all go on waiting.
        """
        rejected, reason, empty = 0, "", 0
        for trace in filter(None, map(self._waiting.take, names)):
            items: Collection[str] | None = trace.items
            waits = False
            try:
                records = _records_of(trace.parts)
                waits = len(records) > 1 and not are_quiet
                if not waits:
                    items = self._store_records(trace, records)
            except NoAnswer as error:  # a health check, a call that failed, or what else there is
                empty, reason = empty + 1, reason or f"made no item so far: {error}"
                _LOG.info("trace without an answer: %s", error)
            except StoreError:
                items = None
                raise
            except (InputError, ValueError, TypeError, AttributeError) as error:
                rejected, reason = rejected + len(trace.parts), reason_of(error)
            finally:
                self._waiting.finish(trace, items, waits=waits)
        if empty and not rejected:
            return 0, f"{counted(empty, 'trace')} {reason}"
        return rejected, reason

    def _store_records(self, trace: WaitingTrace, records: Sequence[Record]) -> list[str]:
        """Store the records of a trace; return its items' ids.

        An item is of the run whose root it has; of others, each takes the next run that has none.
        One that is left as it is keeps its id, and its run makes no other item.
        """
        new = [record.item for record in records]
        with self._storing:  # one import into a dataset at a time
            left = (trace.name, *(item.id for item in new)) if trace.was_left else ()
            maybe = (*trace.items, *left)
            there = {name: self._stored(name) for name in dict.fromkeys(maybe)}
            own = [name for name, old in there.items() if old or name in trace.items]
            roots = {name: old.meta["span_id"] for name, old in there.items() if old}
            for at, name in enumerate(own.copy()):
                of_root = [item for item in new if item.meta["span_id"] == roots.get(name)]
                others = [item for item in new if item.meta["span_id"] not in roots.values()]
                runs = [item for item in of_root or others if item.id == name] or of_root or others
                item, old = next(iter(runs), None), there[name]
                if item is None:
                    _LOG.warning("item %s stays: later spans made its run a part of another", name)
                    continue
                new.remove(item)
                if item.id in own:
                    item = item.model_copy(update={"id": name})
                if old is None:
                    continue  # what somebody removed does not come back
                if item == old or self._is_revised(name, item):
                    own[at] = item.id
            own += self._import(new, trace.name, own) if new else ()
        return own

    def _stored(self, name: str) -> Item | None:
        try:
            return self._store.record(self._dataset, name).item
        except NotFoundError:
            return None

    def _is_revised(self, name: str, item: Item) -> bool:
        try:
            removed = self._store.revise_item(self._dataset, name, item)
        except NotFoundError:  # somebody has just removed it
            return True
        if removed is None:
            _LOG.warning("item %s %s", name, _KEPT)
        elif removed:
            _LOG.warning(
                "item %s was changed by later spans, and lost %s by detectors: annotate it again",
                *(item.id, counted(removed, "annotation")),
            )
        return removed is not None

    def _import(self, items: Sequence[Item], trace: str, own: Collection[str]) -> list[str]:
        """Store items once no other process imports into the dataset; return their ids in order.

        Of a trace that has no items here, what is stored already came otherwise, and stays.
        """
        numbered = (f"{trace}-{n}" for n in count(1))
        names = list[str]()

        def rename(_: int, record: Record) -> Record | None:
            at = names.index(record.item.id)
            if not own:
                del names[at]
                return None
            names[at] = next(name for name in numbered if name not in {*own, *names})
            return Record(item=record.item.model_copy(update={"id": names[at]}))

        until = time.monotonic() + self._patience
        while True:
            names[:] = [item.id for item in items]
            try:
                records = [Record(item=item) for item in items]
                self._store.import_records(self._dataset, records, on_taken=rename)
                return names
            except UnderImportError:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)


def _records_of(parts: Sequence[Mapping[str, Any]]) -> list[Record]:
    """Return the record of each run of a trace that has an answer.

    Raises:
        NoAnswer: no run has an answer.
    """
    records, problem = list[Record](), None
    for run in runs_of(parts):
        try:
            records.append(_in_its_language(record_of(run.spans, run.number).item))
        except NoAnswer as error:
            problem = error
    if problem and not records:
        raise problem
    return records


def _in_its_language(item: Item) -> Record:
    """Return an item with its language, guessed of it alone: later runs do not change it."""
    guess = LanguageGuess()
    guess.add(item)
    return Record(item=item.model_copy(update={"lang": guess.tag}))


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

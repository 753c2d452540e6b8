"""Spans of traces from the files and requests of other programs, each in one form.

OTLP's JSON (also as Tempo answers), spans as Python's SDK prints them, Phoenix's spans, its frame
and the pages of its REST API, MLflow's traces, Jaeger's and Zipkin's, Langfuse's observations,
LangSmith's runs, Datadog's spans of models. A span is a dict, so that traces wait and travel as
JSON:

    {"trace", "id", "parent", "name", "start", "end", "failed", "attributes": {dotted name: value}}

with times in nanoseconds. What else a source says (its kind, its resource, its events) is among the
attributes, under the names that conventions have for it.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from spanlab.formats.reader import parse_list, parse_object

EVENTS: Final = "events"  # the attribute that pydantic-ai has its messages in; ours for all
_FAILED: Final = frozenset(("ERROR", "STATUS_CODE_ERROR", "2"))
_RESOURCES: Final = ("resourceSpans", "resource_spans", "batches")
_HOLD: Final = (  # the fields of what holds spans that have them: OTLP's, then others'
    *_RESOURCES,
    *("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "observations", "trace"),
    *("data", "spans"),
)

# What a span says, by the names that programs have for it.
_TRACE: Final = ("traceId", "trace_id", "traceID")
_ID: Final = ("spanId", "span_id", "spanID", "id")
_PARENT: Final = (
    *("parentSpanId", "parent_span_id", "parent_id", "parentObservationId"),
    *("parent_observation_id", "parent_run_id", "parentId"),
)
_START: Final = (
    *("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime", "start_ns"),
    "timestamp",
)
_END: Final = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")
_STATUS: Final = ("status_code", "level", "status", "otel.status_code")
_ATTRIBUTES: Final = {  # our attribute → where sources without conventions say it
    "openinference.span.kind": ("span_kind", "run_type", "type"),
    "input.value": ("input", "inputs"),
    "output.value": ("output", "outputs"),
    "metadata": ("metadata",),
    "llm.model_name": ("model", "model_name"),
    "llm.token_count.prompt": ("prompt_tokens",),
    "llm.token_count.completion": ("completion_tokens",),
    EVENTS: ("events",),
}
_OF_TRACE: Final = {  # our attribute → what a trace of Langfuse says for all its observations
    "langfuse.trace.id": ("id",),
    "langfuse.session.id": ("sessionId",),
    "langfuse.user.id": ("userId",),
    "langfuse.trace.tags": ("tags",),
    "langfuse.environment": ("environment",),
    "langfuse.trace.input": ("input",),
}
_PACKED: Final[tuple[str, ...]] = (  # what MLflow says in JSON
    *("mlflow.spanType", "mlflow.llm.model", "mlflow.chat.tokenUsage", "mlflow.llm.cost"),
)
_FLATTENED: Final = ("metrics", "usage", "usageDetails")  # objects of numbers


# What records have that are spans, and those that hold some.
_SPANS: Final = (
    frozenset(("context", "attributes")),
    frozenset(("context.trace_id", "context.span_id")),
    frozenset(("traceId", "type", "input", "output")),
    frozenset(("trace_id", "type", "input", "output")),
    frozenset(("trace_id", "run_type", "inputs")),
    frozenset(("traceId", "id", "timestamp", "localEndpoint")),
)
_HOLDERS: Final = (
    *(frozenset((name,)) for name in _RESOURCES),
    frozenset(("trace", "observations")),
    frozenset(("id", "input", "output", "observations")),
    frozenset(("info", "data")),
    frozenset(("trace_id", "spans")),
    frozenset(("trace_id", "trace", "response")),
    frozenset(("traceID", "spans")),
    frozenset(("event_type", "spans")),
)
_CHILDREN: Final = "child_runs"  # where LangSmith nests runs, a run is a record with all in it


def holds_spans(record: Mapping[str, Any]) -> bool:
    """Say whether a record of a file is a span, a trace or a page of such.

    Of a large file only the names are known, and its lists are empty.
    """
    data, trace, observed = (record.get(name) for name in ("data", "trace", "observations"))
    if isinstance(trace, dict) and holds_spans(trace):
        return True
    if isinstance(observed, list) and any(isinstance(one, str) for one in observed):
        return False  # a row of Langfuse's table of traces has the ids of its observations alone
    if isinstance(data, list):
        first = data[0] if data and isinstance(data[0], dict) else {}
        own = first.get("attributes")
        named = {*first, *(own if isinstance(own, dict) else ())}
        is_span = not {"context", *_TRACE}.isdisjoint(named)
        return ("next_cursor" in record and not data) or is_span or holds_spans(first)
    lists = any(isinstance(record.get(name), list) for name in ("context", "attributes"))
    names = record.keys()
    is_span = not (lists or record.get(_CHILDREN)) and any(map(names.__ge__, _SPANS))
    return is_span or any(map(names.__ge__, _HOLDERS))


def spans_in(request: Any) -> Iterator[dict[str, Any]]:
    """Yield the spans of a request, a trace, or the one span that an object is.

    Raises:
        KeyError, TypeError, ValueError: it is none of these.
    """
    return (placed.span for placed in placed_spans(request))


class PlacedSpan(NamedTuple):
    """A span, and its request as it stands, without the other spans in it."""

    span: dict[str, Any]
    source: Any


def placed_spans(request: Any, shared: Mapping[str, Any] | None = None) -> Iterator[PlacedSpan]:
    """Yield what ``spans_in`` yields, each with its source; ``shared`` is said of all of them."""
    shared = shared or {}
    if isinstance(request, list):  # a trace of Zipkin's API
        for part in request:
            yield from placed_spans(part, shared)
        return
    name = next((name for name in _HOLD if _is_held(_parsed(request.get(name)))), None)
    if name is None:
        yield PlacedSpan(_span(request, shared), request)
        return
    held = _parsed(request[name])
    for part in held if isinstance(held, list) else [held]:
        for span, source in placed_spans(part, {**shared, **_shared(request, part)}):
            yield PlacedSpan(span, {**request, name: [source] if part is not held else source})


def _is_held(value: Any) -> bool:
    return isinstance(value, dict | list)


def _shared(holder: Mapping[str, Any], part: Any) -> dict[str, Any]:
    """Return what a holder says of all spans in a part of it, by the names of conventions."""
    about = holder if "trace_metadata" in holder else holder.get("info") or {}
    process = (holder.get("processes") or {}).get(part.get("processID")) or {}
    service = {"service.name": process["serviceName"]} if process else {}
    resource, trace = holder.get("resource") or {}, holder.get("trace")
    own = _renamed(trace if isinstance(trace, dict) else holder, _OF_TRACE)
    own = own if "observations" in holder else {}
    metadata = _parsed(about.get("trace_metadata"))
    metadata = metadata if isinstance(metadata, dict) else {}
    return _plain(resource.get("attributes")) | metadata | service | own


def _span(said: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return a span in our form; what it says is found under any of its names."""
    span = _opened(said)
    attributes = {**about, **_attributes(span)}
    start, end = _first(span, _START), _first(span, _END)
    if end is None and isinstance(span.get("duration"), int):  # in the unit of the start
        end = start + span["duration"]
    status = _first({**attributes, **span}, _STATUS)
    if isinstance(status, dict):
        status = _first(status, ("code", "status_code"))
    own, parent = _id(_first(span, _ID)), _id(_first(span, _PARENT))
    return {
        "trace": _id(_first(span, _TRACE) or about.get("langfuse.trace.id") or span["trace_id"]),
        "id": own,
        "parent": None if parent in (own, "undefined") else parent,  # itself: to wait for ever
        "name": str(_first(span, ("name", "operationName")) or ""),
        "start": nanoseconds(start),
        "end": nanoseconds(end) or nanoseconds(start),
        "failed": str(status).upper() in _FAILED or bool(span.get("error")),
        "attributes": attributes,
    }


def _opened(span: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a span with what some programs put into parts of it, at its top."""
    if "context.trace_id" in span:  # a row of Phoenix's frame
        own = {name: _parsed(value) for name, value in span.items()}
        own = {name: value for name, value in own.items() if value not in (None, "")}
        attributes = {name[11:]: value for name, value in own.items() if name[:11] == "attributes."}
        ids = {name[8:]: value for name, value in own.items() if name[:8] == "context."}
        return {**own, **ids, "attributes": attributes}
    if isinstance(meta := span.get("meta"), dict):  # Datadog's
        return {**span, **meta, "span_kind": (meta.get("span") or {}).get("kind")}
    if not isinstance(inner := span.get("attributes"), dict):
        inner = {}
    if "span_kind" in inner and "trace_id" in inner:  # … as its API answers
        return inner
    parents = [link["spanID"] for link in span.get("references") or ()]  # Jaeger's
    linked = {"parent_id": parents[0]} if parents else {}
    said = (span.get("extra") or {}).get("metadata") or {}  # LangSmith's
    about = {"metadata": said, "model": said.get("ls_model_name")} if said else {}
    return {**span, **(span.get("context") or {}), **linked, **about}


def _parsed(cell: Any) -> Any:
    """Return the object or list that a table's cell is in JSON or Python; else the cell."""
    return parse_list(parse_object(cell))


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that a span says besides its place, by the names of conventions."""
    resource = (span.get("resource") or {}).get("attributes")
    service = span.get("serviceName") or (span.get("localEndpoint") or {}).get("serviceName")
    numbers = {name: span[name] for name in _FLATTENED if isinstance(span.get(name), dict)}
    said = _plain(resource) | _plain(span.get("tags")) | _plain(span.get("attributes"))
    about = _renamed(span, _ATTRIBUTES) | ({"service.name": service} if service else {})
    packed = {name: _parsed(str(said[name]).strip('"')) for name in _PACKED if name in said}
    said |= flat(packed)
    about[EVENTS] = [_event(event) for event in plain_list(about.get(EVENTS))]
    return {**flat(numbers), **{name: held for name, held in about.items() if held}, **said}


def _renamed(source: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return what a source says, by our names for it."""
    found = {ours: _first(source, theirs) for ours, theirs in names.items()}
    return {ours: value for ours, value in found.items() if value is not None}


def _first(source: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((source[name] for name in names if source.get(name) is not None), None)


def _id(value: Any) -> Any:
    """Return an id in hexadecimal digits, which MLflow writes in base64."""
    if isinstance(value, str) and value.endswith("="):
        return b64decode(value).hex()
    return value.removeprefix("0x") if isinstance(value, str) else value


def plain_list(value: Any) -> list[Any]:
    """Return a value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def _event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event by its name and attributes."""
    return {"event.name": event.get("name"), **_plain(event.get("attributes"))}


def _plain(said: Any) -> dict[str, Any]:
    """Return attributes by their dotted names, from an object, or a list of keys and values."""
    if not isinstance(said, list):
        return flat(said or {})
    pairs = (part for part in said if isinstance(part, dict) and "key" in part)
    return {part["key"]: _value(part.get("value")) for part in pairs}


def _value(value: Any) -> Any:
    """Return what an OTLP value holds; Phoenix names all other kinds, too, with null."""
    if not isinstance(value, dict):
        return value
    for kind, content in value.items():
        if content is None:
            continue
        if kind in ("arrayValue", "array_value"):
            return [_value(inner) for inner in content.get("values", ())]
        if kind in ("kvlistValue", "kvlist_value"):
            return _plain(content.get("values"))
        return content
    return None


def nanoseconds(value: Any) -> int:
    """Return a time in nanoseconds since 1970: a number in any usual unit, or ISO 8601; 0 for none.

    Numbers are told by their size: seconds of our time have 10 digits, nanoseconds 19.
    """
    if isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal()):
        number = int(value)
        digits = 0 if number <= 0 else int(math.log10(number)) + 1
        return number * 10 ** (19 - digits) if digits in (10, 13, 16) else number
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return 0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1e6) * 1000


def flat(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes by their dotted names; some exports nest them."""
    return dict(_flat("", attributes))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if name == EVENTS:
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for index, inner in enumerate(value):
            yield from _flat(f"{name}.{index}", inner)
    else:
        yield name, value

"""Spans of traces from the files and requests of other programs, each in one form.

OTLP's JSON (also as Tempo answers), spans as Python's SDK prints them, Phoenix's spans, its frame
and the pages of its REST API, MLflow's traces, Jaeger's, Langfuse's observations and LangSmith's
runs. A span is a dict, so that traces wait and travel as JSON:

    {"trace", "id", "parent", "name", "start", "end", "failed", "attributes": {dotted name: value}}

with times in nanoseconds. What else a source says (its kind, its resource, its events) is among the
attributes, under the names that conventions have for it.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from spanlab.datasets.formats.observations import (
    holds_observations,
    is_observation,
    spans_of,
)

EVENTS: Final = "events"  # the attribute that pydantic-ai has its messages in; ours for all
_FAILED: Final = frozenset(("ERROR", "STATUS_CODE_ERROR", "2"))
_IDS: Final = frozenset(("context", "trace_id", "traceId"))  # where a span says its trace


def spans_in(request: Any) -> Iterator[dict[str, Any]]:
    """Yield the spans of a request, a trace, or the one span that an object is.

    Raises:
        KeyError, TypeError, ValueError: it is none of these.
    """
    if isinstance(request.get("trace"), Mapping) and "observations" not in request:
        request = request["trace"]  # as Tempo answers
    if is_observation(request) or holds_observations(request):
        for span in spans_of(request):
            yield {**span, "start": nanoseconds(span["start"]), "end": nanoseconds(span["end"])}
    elif is_phoenix_page(request):
        for span in request["data"]:
            yield from spans_in(span) if "context" in span else [_of_otlp(span, {})]
    elif is_jaegers(request):
        for trace in request["data"]:
            yield from (_of_jaeger(span, trace.get("processes") or {}) for span in trace["spans"])
    elif isinstance(spans := (request.get("data") or request).get("spans"), list):  # MLflow's
        about = request.get("info", request).get("trace_metadata") or {}
        for span in spans:
            yield _single(span, {**about, **(span.get("attributes") or {})})
    elif "context.trace_id" in request:  # a row of Phoenix's frame
        attributes = {
            name.removeprefix("attributes."): value
            for name, value in request.items()
            if name.startswith("attributes.") and value is not None
        }
        ids = {name: request.get(f"context.{name}") for name in ("trace_id", "span_id")}
        yield _single({**request, **ids}, attributes)
    elif "attributes" in request and "context" in request:
        resource = (request.get("resource") or {}).get("attributes") or {}
        yield _single({**request, **request["context"]}, {**resource, **request["attributes"]})
    else:
        yield from _otlp(request)


def is_phoenix_page(value: Mapping[str, Any]) -> bool:
    """Say whether a JSON object is a page of spans, as Phoenix's REST API replies.

    Of a large file only the names are known, and its list is empty.
    """
    spans = value.get("data")
    if "next_cursor" not in value or not isinstance(spans, list):
        return False
    return not spans or (isinstance(spans[0], dict) and not _IDS.isdisjoint(spans[0]))


def is_jaegers(value: Mapping[str, Any]) -> bool:
    """Say whether a JSON object holds traces as Jaeger exports them."""
    traces = value.get("data")
    first = traces[0] if isinstance(traces, list) and traces else None
    return isinstance(first, dict) and {"traceID", "spans"} <= first.keys()


def _of_jaeger(span: Mapping[str, Any], processes: Mapping[str, Any]) -> dict[str, Any]:
    process = processes.get(span.get("processID", ""), {})
    tags = {tag["key"]: tag.get("value") for tag in span.get("tags") or ()}
    parents = [link["spanID"] for link in span.get("references") or ()]
    start = span["startTime"] * 1000  # Jaeger's are microseconds
    plain = {
        "trace_id": span["traceID"],
        "span_id": span["spanID"],
        "parent_id": next(iter(parents), None),
        "name": span.get("operationName"),
        "start_time": start,
        "end_time": start + span.get("duration", 0) * 1000,
        "status_code": tags.get("otel.status_code", ""),
    }
    return _single(plain, {"service.name": process.get("serviceName"), **tags})


def _otlp(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names = ("resourceSpans", "resource_spans", "batches")
    for resource in next((request[name] for name in names if request.get(name)), ()):
        about = _attributes((resource.get("resource") or {}).get("attributes"))
        for scope in resource.get("scopeSpans") or resource.get("scope_spans") or ():
            for span in scope["spans"]:
                yield _of_otlp(span, about)


def _of_otlp(span: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    return _single(span, {**about, **_attributes(span.get("attributes"))})


def _single(span: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a span in our form; what it says is found under either style of names."""

    def named(*names: str) -> Any:
        return next((span[name] for name in names if span.get(name) is not None), None)

    events = [_event(event) for event in plain_list(span.get("events"))]
    more: dict[str, Any] = {EVENTS: events} if events and EVENTS not in attributes else {}
    if kind := span.get("span_kind"):
        more.setdefault("openinference.span.kind", kind)
    status = span.get("status")
    code = status if isinstance(status, str) else (status or {}).get("code")
    code = code if isinstance(status, str | None) else status.get("status_code", code)
    start = nanoseconds(named("startTimeUnixNano", "start_time_unix_nano", "start_time"))
    own, parent = (
        _id(named("spanId", "span_id")),
        _id(named("parentSpanId", "parent_span_id", "parent_id")),
    )
    return {
        "trace": _id(named("traceId", "trace_id") or span["trace_id"]),
        "id": own,
        "parent": None if parent == own else parent,  # which would wait for itself for ever
        "name": str(named("name") or ""),
        "start": start,
        "end": nanoseconds(named("endTimeUnixNano", "end_time_unix_nano", "end_time")) or start,
        "failed": str(span.get("status_code", code)).upper() in _FAILED,
        "attributes": {**flat(attributes), **more},
    }


def _id(value: Any) -> Any:
    """Return an id in hexadecimal digits, which MLflow writes in base64."""
    if isinstance(value, str) and value.endswith("="):
        return b64decode(value).hex()
    return value.removeprefix("0x") if isinstance(value, str) else value


def plain_list(value: Any) -> list[Any]:
    """Return a value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def _event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event by its name and attributes, those of OTLP in plain form."""
    held = event.get("attributes") or {}
    plain = _attributes(held) if isinstance(held, list) else held
    return {"event.name": event.get("name"), **plain}


def _attributes(listed: Any) -> dict[str, Any]:
    return {attribute["key"]: _value(attribute.get("value") or {}) for attribute in listed or ()}


def _value(value: Mapping[str, Any]) -> Any:
    """Return what an OTLP value holds; Phoenix names all other kinds, too, with null."""
    for kind, content in value.items():
        if content is None:
            continue
        if kind in ("arrayValue", "array_value"):
            return [_value(inner) for inner in content.get("values", ())]
        if kind in ("kvlistValue", "kvlist_value"):
            return _attributes(content.get("values"))
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

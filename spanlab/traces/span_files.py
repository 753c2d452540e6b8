"""Spans of traces from the files and requests of other programs, each in one form.

OTLP's JSON (also as Tempo answers), spans as Python's SDK prints them, Phoenix's spans, its frame
and the pages of its REST API, MLflow's traces, Jaeger's and Zipkin's, Langfuse's observations,
LangSmith's runs, Datadog's spans of models. Messages that OTLP's logs hold belong to the spans that
they name. A span is a dict, so that traces wait and travel as
JSON:

    {"trace", "id", "parent", "name", "start", "end", "failed", "attributes": {dotted name: value}}

with times in nanoseconds, and "feedback" where people or judges gave some on it or on its trace.
What else a source says (its kind, its resource, its events) is among the attributes, under the
names that conventions have for it.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple

from spanlab.formats.feedback import feedback_in
from spanlab.formats.reader import parse_list, parse_object
from spanlab.traces.conventions import names_in

EVENTS: Final = "events"  # the attribute that pydantic-ai has its messages in; ours for all
_FAILED: Final = frozenset(("ERROR", "STATUS_CODE_ERROR", "2"))
_HOLD: Final = names_in("records")["field"]
_PLACES: Final = names_in("places")
_ATTRIBUTES: Final = names_in("attributes")
_OF_TRACE: Final = names_in("trace")
_PACKED: Final[tuple[str, ...]] = (  # what MLflow says in JSON
    *("mlflow.spanType", "mlflow.llm.model", "mlflow.chat.tokenUsage", "mlflow.llm.cost"),
)
_FEEDBACK: Final = "feedback"
_ON_SPAN: Final = ("span_id", "observationId")  # where feedback on a trace is on one span of it
_NUMBERS: Final = ("metrics", "usage", "usageDetails")  # objects of numbers

_SPANS, _HOLDERS = (
    [frozenset(row.split()) for row in names_in("records")[of]] for of in ("span", "holder")
)
_LOGGED_AT: Final = ("timeUnixNano", "observedTimeUnixNano")  # of records of a log
_CHILDREN: Final = "child_runs"  # where LangSmith nests runs, a run is a record with all in it


def holds_spans(record: Mapping[str, Any]) -> bool:
    """Say whether a record of a file is a span, a trace or a page of such.

    Of a large file only the names are known, and its lists are empty.
    """
    if _framed(record):
        return True
    data, trace, observed = (record.get(name) for name in ("data", "trace", "observations"))
    if isinstance(trace, dict) and holds_spans(trace):
        return True
    if isinstance(observed, list) and any(isinstance(one, str) for one in observed):
        return False  # a row of Langfuse's table of traces has the ids of its observations alone
    if isinstance(data, list):
        first = data[0] if data and isinstance(data[0], dict) else {}
        own = first.get("attributes")
        named = {*first, *(own if isinstance(own, dict) else ())}
        is_span = not {"context", *_PLACES["trace"]}.isdisjoint(named)
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
    rows = request if isinstance(request, list) else _framed(request)
    for part in rows:  # a list is a trace of Zipkin's API
        yield from placed_spans(part, shared)
    if rows or isinstance(request, list):
        return
    held = {name: _parsed(request.get(name)) for name in _HOLD}
    name = next((name for name, value in held.items() if isinstance(value, dict | list)), None)
    if name is None:
        if span := _span(request, shared or {}):
            yield PlacedSpan(span, request)
        return
    whole = held[name]
    if name == "observations" and not whole:  # of a trace that says all itself, as one call
        about = {**(shared or {}), **_shared(request, {})}
        yield PlacedSpan(_span({"type": "generation", **request}, about), request)
    for part in whole if isinstance(whole, list) else [whole]:
        for span, source in placed_spans(part, {**(shared or {}), **_shared(request, part)}):
            yield PlacedSpan(span, {**request, name: [source] if part is not whole else source})


def _framed(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of Phoenix's frame that pandas wrote by its columns, its index, or split."""
    columns, rows = record.get("context.trace_id"), record
    names, split = record.get("columns"), record.get("data")
    if isinstance(names, list) and isinstance(split, list) and "context.trace_id" in names:
        index = record.get("index") or range(len(split))
        rows = {n: dict(zip(names, row, strict=True)) for n, row in zip(index, split, strict=True)}
    if isinstance(columns, dict):
        rows = {n: {c: cells.get(n) for c, cells in record.items()} for n in columns}
    if not all(isinstance(row, dict) and "context.trace_id" in row for row in rows.values()):
        return []
    return [{"context.span_id": name, **row} for name, row in rows.items()]


def _shared(holder: Mapping[str, Any], part: Any) -> dict[str, Any]:
    """Return what a holder says of all spans in a part of it, by the names of conventions."""
    services = {"service.name": (f"processes/{part.get('processID')}/serviceName",)}  # Jaeger's
    own = _renamed(holder, _OF_TRACE if "observations" in holder else {})
    metadata = _parsed(_first(holder, ("trace_metadata", "info/trace_metadata")))
    metadata = metadata if isinstance(metadata, dict) else {}
    resource = _plain(_first(holder, ("resource/attributes",)))
    feedback = {_FEEDBACK: given} if (given := list(feedback_in(holder))) else {}
    return resource | metadata | _renamed(holder, services) | own | feedback


def _span(said: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return a span in our form; what it says is found at any of its places.

    Of a message that came as a record of a log it has trace, id and "event" alone; of any other
    record there is nothing.
    """
    inner = said.get("attributes")
    if isinstance(inner, dict) and {"span_kind", "trace_id"} <= inner.keys():  # Datadog's API
        said = inner
    elif "context.trace_id" in said:  # a row of Phoenix's frame; inputs in JSON stay whole
        said = {n: v if n.endswith(".value") else _parsed(v) for n, v in said.items()}
    trace, own, parent = (_id(_first(said, _PLACES[of])) for of in ("trace", "id", "parent"))
    if any(name in said for name in _LOGGED_AT):
        event = _event(said)
        is_message = trace and str(event["event.name"]).startswith("gen_ai.")
        at = nanoseconds(_first(said, _LOGGED_AT))
        place = {"trace": trace, "id": own, "parent": own, "start": at}
        return {**place, "event": event} if is_message else {}
    attributes = {**about, **_attributes(said)}
    attributes.pop(_FEEDBACK, None)
    feedback = [*_feedback(about, own), *({**one, "span": own} for one in feedback_in(said))]
    start, end = _first(said, _PLACES["start"]), _first(said, _PLACES["end"])
    if end is None and isinstance(said.get("duration"), int):  # in the unit of the start
        end = start + said["duration"]
    return {
        "trace": trace or about.get("langfuse.trace.id") or said["trace_id"],
        "id": own,
        "parent": None if parent in (own, "undefined") else parent,  # itself: to wait for ever
        "name": str(_first(said, ("name", "operationName")) or ""),
        "start": nanoseconds(start),
        "end": nanoseconds(end) or nanoseconds(start),
        "failed": str(_first({**attributes, **said}, _PLACES["status"])).upper() in _FAILED
        or bool(said.get("error")),
        "attributes": attributes,
        **({_FEEDBACK: feedback} if feedback else {}),
    }


def _feedback(about: Mapping[str, Any], span: Any) -> Iterator[dict[str, Any]]:
    """Yield the feedback on a trace, of that on one of its spans only what is on this one."""
    for given in about.get(_FEEDBACK, ()):
        on_span = _id(_first(given, _ON_SPAN))
        if on_span in (None, span):
            yield {**given, "span": on_span}


def _parsed(cell: Any) -> Any:
    """Return the object or list that a table's cell is in JSON or Python; else the cell."""
    return parse_list(parse_object(cell))


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that a span says besides its place, by the names of conventions."""
    numbers = {name: span[name] for name in _NUMBERS if isinstance(span.get(name), dict)}
    about = _renamed(span, _ATTRIBUTES)
    about[EVENTS] = [_event(event) for event in plain_list(about.get(EVENTS))]
    columns = {name[11:]: span[name] for name in span if name[:11] == "attributes."}
    said = _plain(_first(span, ("resource/attributes",))) | _plain(span.get("tags"))
    said |= _plain(span.get("attributes")) | flat({n: v for n, v in columns.items() if v})
    packed = {name: _parsed(str(said[name]).strip('"')) for name in _PACKED if name in said}
    return {
        **flat(numbers),
        **{n: held for n, held in about.items() if held},
        **said,
        **flat(packed),
    }


def _renamed(source: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return what a source says, by our names for it."""
    found = {ours: _first(source, theirs) for ours, theirs in names.items()}
    return {ours: value for ours, value in found.items() if value is not None}


def _first(source: Mapping[str, Any], places: Iterable[str]) -> Any:
    """Return what stands at the first of some places at which anything does."""
    found = (_at(source, place) for place in places)
    return next((value for value in found if value not in (None, "")), None)


def _at(source: Any, place: str) -> Any:
    for name in place.split("/"):
        inner = source[0] if isinstance(source, list) and source else source
        source = inner.get(name) if isinstance(inner, Mapping) else None
    return source


def _id(value: Any) -> Any:
    """Return an id in hexadecimal digits, which MLflow and protobuf's JSON have in base64."""
    if isinstance(value, dict | list):
        raise TypeError(f"an id is a text or a number, found {str(value)[:60]!r}")
    if isinstance(value, str) and value.endswith("="):
        return b64decode(value).hex()
    return value.removeprefix("0x") if isinstance(value, str) else value


def plain_list(value: Any) -> list[Any]:
    """Return a value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def joined(spans: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return spans, each with the events of it that came apart, as records of a log."""
    events: dict[Any, list[Any]] = {}
    for span in sorted((span for span in spans if "event" in span), key=itemgetter("start")):
        events.setdefault(span["id"], []).append(span["event"])
    whole = [dict(span) for span in spans if "event" not in span]
    for span in whole:
        if apart := events.get(span["id"]):
            own = plain_list(_parsed(span["attributes"].get(EVENTS)))
            span["attributes"] = {**span["attributes"], EVENTS: own + apart}
    return whole


def _event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event by its name and attributes, and what a record of a log holds."""
    name = _first(event, ("name", "eventName", "event_name"))
    body = {"body": _value(event["body"])} if "body" in event else {}
    return {"event.name": name, **body, **_plain(event.get("attributes"))}


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
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    if isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal()):
        digits, number = len(str(int(value))), int(value)
        return number * int(10 ** (19 - digits)) if digits in (10, 13, 16) else number
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

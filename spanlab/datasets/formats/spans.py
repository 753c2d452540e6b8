"""Spans of traces in one form, whichever convention and program they come from.

Read are OTLP's JSON, spans as Python's SDK prints them, Phoenix's spans, its frame and the pages of
its REST API, MLflow's traces and Langfuse's observations; with attributes or events of
OpenInference, OpenLLMetry, OpenTelemetry's conventions for generative models (``gen_ai.*``, all
their generations), pydantic-ai and Vercel's AI SDK. A span is a dict, so that traces wait and
travel as JSON:

    {"trace", "id", "parent", "name", "start", "end", "failed", "attributes": {dotted name: value}}

with times in nanoseconds. What else a source says (its kind, its resource, its events) is among the
attributes, under the names that conventions have for it.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from spanlab.datasets.cells import is_chat, is_message, is_reply, text_of_message, text_of_reply
from spanlab.datasets.formats.observations import (
    holds_observations,
    is_observation,
    parse_json,
    spans_of,
)
from spanlab.datasets.reader import passages_of
from spanlab.errors import InputError

Span = Mapping[str, Any]
_FAILED: Final = frozenset(("ERROR", "STATUS_CODE_ERROR", "2"))
_IDS: Final = frozenset(("context", "trace_id", "traceId"))  # where a span says its trace
_EVENTS: Final = "events"  # the attribute that pydantic-ai has its messages in; ours for all

# What a span is for, by the words that conventions have for it.
_KINDS: Final = {
    **dict.fromkeys(("llm", "chat_model", "generation", "chat", "text_completion"), "model"),
    **dict.fromkeys(("generate_content", "completion", "ai.generatetext.dogenerate"), "model"),
    **dict.fromkeys(("ai.streamtext.dostream", "ai.generateobject.dogenerate"), "model"),
    **dict.fromkeys(("retriever", "reranker", "retrieval", "vector_db_retrieve"), "retriever"),
    **dict.fromkeys(("tool", "execute_tool", "ai.toolcall"), "tool"),
    **dict.fromkeys(("guardrail", "evaluator", "guard"), "aside"),
}
_SAYS_KIND: Final = (
    *("openinference.span.kind", "mlflow.spanType", "langfuse.observation.type", "ai.operationId"),
    *("operation.name", "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type"),
)
_INPUTS: Final = (
    *("input.value", "traceloop.entity.input", "gen_ai.task.input", "mlflow.spanInputs"),
    *("langfuse.observation.input", "ai.prompt", "ai.toolCall.args", "gen_ai.tool.call.arguments"),
)
_OUTPUTS: Final = (
    *("output.value", "traceloop.entity.output", "gen_ai.task.output", "mlflow.spanOutputs"),
    *("langfuse.observation.output", "ai.response.text", "final_result", "ai.toolCall.result"),
    *("gen_ai.tool.call.result", "tool_response"),
)
_DOCUMENTS: Final = (
    "retrieval.documents",
    "reranker.output_documents",
    "gen_ai.retrieval.documents",
)
_LISTS: Final = (
    "documents",
    "outputs",
    "output",
    "passages",
    "contexts",
    "results",
    "chunks",
    "nodes",
)
_OF_APIS: Final = ("choices", "generations", "tool_calls", "message")  # of replies, also empty
_QUERY_RESULT: Final = "db.query.result.document"  # of OpenLLMetry's events, one a document


class TracedMessage(NamedTuple):
    """What somebody said in a model's call."""

    role: str
    text: str


def spans_in(request: Any) -> Iterator[dict[str, Any]]:
    """Yield the spans of a request, a trace, or the one span that an object is.

    Raises:
        KeyError, TypeError, ValueError: it is none of these.
    """
    if is_observation(request) or holds_observations(request):
        for span in spans_of(request):
            yield {**span, "start": nanoseconds(span["start"]), "end": nanoseconds(span["end"])}
    elif is_phoenix_page(request):
        for span in request["data"]:
            yield from spans_in(span) if "context" in span else [_of_otlp(span, {})]
    elif isinstance(data := request.get("data"), Mapping) and "spans" in data:
        about = request.get("info", {}).get("trace_metadata", {})
        for span in data["spans"]:
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


def _otlp(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in request.get("resourceSpans") or request.get("resource_spans") or ():
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

    events = [_event(event) for event in _plain_list(span.get("events"))]
    more: dict[str, Any] = {_EVENTS: events} if events and _EVENTS not in attributes else {}
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


def _plain_list(value: Any) -> list[Any]:
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
    if name == _EVENTS:
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for index, inner in enumerate(value):
            yield from _flat(f"{name}.{index}", inner)
    else:
        yield name, value


def kind_of(span: Span) -> str:
    """Return what a span is for: "model", "retriever", "tool", "aside" (a guard) or ""."""
    attributes = span["attributes"]
    for name in _SAYS_KIND:
        said = attributes.get(name)
        said = parse_json(said) if name.startswith("mlflow") else said
        if kind := _KINDS.get(str(said).lower()):
            return kind
    if attributes.get("gen_ai.completion.0.content") is not None:
        return "model"
    is_query = any(_QUERY_RESULT in event for event in events_of(span))
    return "retriever" if is_query else ""


def events_of(span: Span) -> list[dict[str, Any]]:
    """Return a span's events, by the names of their attributes."""
    events = parse_json(span["attributes"].get(_EVENTS))
    return [event for event in _plain_list(events) if isinstance(event, dict)]


def input_of(span: Span) -> Any:
    """Return what a span was given, unpacked; None if it does not say."""
    return _unpacked(_first(span["attributes"], _INPUTS), ("inputs", "input"))


def output_of(span: Span) -> Any:
    """Return what a span gave back, unpacked; None if it does not say."""
    return _unpacked(_first(span["attributes"], _OUTPUTS), ("outputs",))


def _first(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name)), None)


def _unpacked(value: Any, around: Sequence[str]) -> Any:
    """Return a value without what programs put around it: JSON, a wrapper, LangChain's classes."""
    inner = parse_json(value)
    inner = _without_classes(value if inner is None else inner)
    for name in around:
        if isinstance(inner, dict) and name in inner:
            return _unpacked(inner[name], ())
    return inner


def _without_classes(value: Any) -> Any:
    """Return a value with LangChain's objects, in either form that it writes, as plain ones."""
    if isinstance(value, list):
        return [_without_classes(part) for part in value]
    if not isinstance(value, dict):
        return value
    if {"lc", "kwargs"} <= value.keys():
        return _without_classes(value["kwargs"])
    if value.keys() == {"type", "data"} and isinstance(value["data"], dict):
        return _without_classes(value["data"])
    return {name: _without_classes(inner) for name, inner in value.items()}


def documents_of(span: Span) -> list[str]:
    """Return the texts that a retriever or a tool found, letter by letter."""
    attributes = span["attributes"]
    for name in _DOCUMENTS:
        listed = _listed(attributes, name)
        texts = [document.get("document.content") or document.get("content") for document in listed]
        if any(texts):
            return [str(text) for text in texts if text]
    results = [event[_QUERY_RESULT] for event in events_of(span) if _QUERY_RESULT in event]
    if results:
        return [str(result) for result in results]
    if kind_of(span) not in ("retriever", "tool"):
        return []
    value = output_of(span)
    if kind_of(span) == "tool" and isinstance(value, str | None):
        return [value] if value else []
    while isinstance(value, dict) and (name := next((n for n in _LISTS if n in value), "")):
        value = value[name]
    return _texts(value)


def _texts(value: Any) -> list[str]:
    """Return the texts of documents; none for what only names them, as LlamaIndex's objects."""
    try:
        texts = [passage.text for passage in passages_of(value, "documents")]
    except InputError:
        return [] if value is None else [str(value)]
    return [text for text in texts if text.strip() and not text.startswith("<NodeWithScore")]


def has_documents(span: Span) -> bool:
    """Say whether a retriever's span has its documents in the convention's own place."""
    return any(_listed(span["attributes"], name) for name in _DOCUMENTS)


def messages_of(span: Span, *, read: bool) -> list[TracedMessage]:
    """Return what a model's call read or wrote, by the first convention that has any.

    Thoughts and calls of tools are left out; what tools returned has the role "tool".
    """
    attributes = span["attributes"]
    side = "input" if read else "output"
    messages = [
        TracedMessage(str(message.get("message.role") or ""), _content(message))
        for message in _listed(attributes, f"llm.{side}_messages")
    ]
    messages = messages or [
        TracedMessage(str(message.get("role") or ""), str(message.get("content") or ""))
        for message in _listed(attributes, "gen_ai.prompt" if read else "gen_ai.completion")
    ]
    names = (f"gen_ai.{side}.messages", *(("ai.prompt.messages",) if read else ()))
    for name in names:
        messages = messages or list(_structured(attributes.get(name)))
    messages = messages or list(_of_events(span, read=read))
    if not any(message.text.strip() for message in messages):
        value = input_of(span) if read else output_of(span)
        messages = list(_in_value(value, read=read))
        as_written = _first(attributes, _OUTPUTS)
        if not (read or messages) and isinstance(as_written, str) and not _is_of_api(value):
            messages = [TracedMessage("assistant", as_written)]
    return [message for message in messages if message.text.strip()]


def _content(message: Mapping[str, Any]) -> str:
    text = str(message.get("message.content") or "")
    parts = [
        str(value)
        for key, value in message.items()
        if key.startswith("message.contents.") and key.endswith("message_content.text")
    ]
    return text or "\n".join(parts)


def _structured(value: Any) -> Iterator[TracedMessage]:
    """Yield the messages of ``gen_ai.input.messages`` and its like: a chat, or JSON with parts."""
    for message in _plain_list(parse_json(value)):
        if not isinstance(message, dict):
            continue
        role = str(message.get("role") or "")
        parts = [part for part in _plain_list(message.get("parts")) if isinstance(part, dict)]
        for part in parts:
            if part.get("type") == "tool_call_response":
                result = part.get("result", part.get("response", part.get("content")))
                yield TracedMessage("tool", result if isinstance(result, str) else str(result))
        texts = [str(part.get("content") or "") for part in parts if part.get("type") == "text"]
        yield TracedMessage(role, "\n".join(texts) if parts else text_of_message(message))


def _of_events(span: Span, *, read: bool) -> Iterator[TracedMessage]:
    """Yield the messages of a span's events, of any generation of the convention."""
    for event in events_of(span):
        name = str(event.get("event.name") or "")
        if name.endswith(("content.prompt", "content.completion", "operation.details")):
            side = "input" if read else "output"
            old = "gen_ai.prompt" if read else "gen_ai.completion"
            value = event.get(f"gen_ai.{side}.messages", event.get(old))
            chat = list(_structured(value))
            yield from chat or _in_value(_unpacked(value, ()), read=read)
        elif name == "gen_ai.choice" and not read:
            body = parse_json(event.get("body")) or event
            message = _unpacked(body.get("message", body), ())
            said = message.get("content") if isinstance(message, dict) else message
            yield TracedMessage("assistant", said if isinstance(said, str) else "")
        elif name.startswith("gen_ai.") and name.endswith(".message") and read:
            body = parse_json(event.get("body")) or event
            role = name.split(".")[1]
            yield TracedMessage(role, str(body.get("content") or ""))


def _in_value(value: Any, *, read: bool) -> Iterator[TracedMessage]:
    """Yield the messages in a span's input or output, or its text as one."""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = _unpacked(value["messages"], ())
        value = value[0] if value and isinstance(value[0], list) else value
    if isinstance(value, list) and is_chat(value):
        for message in value:
            yield TracedMessage(
                str(message.get("role") or message.get("type") or ""), text_of_message(message)
            )
    elif is_message(value):
        yield TracedMessage(str(value.get("role") or ""), text_of_message(value))
    elif isinstance(value, str):
        yield TracedMessage("" if read else "assistant", value)
    elif not read and is_reply(value):
        yield TracedMessage("assistant", text_of_reply(value))


def _is_of_api(value: Any) -> bool:
    """Say whether a value is a reply of a model's API, also one without a text."""
    return isinstance(value, dict) and not value.keys().isdisjoint(_OF_APIS)


def _listed(attributes: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects that a list of attributes such as ``name.0.key`` holds, in order."""
    by_index: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(f"{name}."):
            number, _, field = key.removeprefix(f"{name}.").partition(".")
            if number.isdecimal():
                by_index.setdefault(int(number), {})[field] = value
    held = parse_json(attributes.get(name))
    if not by_index and isinstance(held, list):
        return [flat(part) for part in held if isinstance(part, dict)]
    return [by_index[number] for number in sorted(by_index)]

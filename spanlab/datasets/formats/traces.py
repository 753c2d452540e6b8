"""OpenTelemetry traces of language models, exported as JSON: what pipelines write by themselves.

Read are OTLP's JSON (``resourceSpans``, a request a line or the whole file), spans as Python's SDK
prints them (``context`` and ``attributes``: an array, on a line each, or as its console exporter
does, also between lines of a log) with the attributes of OpenInference or of OpenTelemetry's own
conventions for generative models (``gen_ai.*``), and Langfuse's observations.

An item is a trace: its answer is what the last model call returned, its question the input of the
first span that has one, its process what the calls read and wrote. Spans do not say which text was
made from which; that is told from what they say (see ``recording``): a message that holds retrieved
documents or earlier answers word for word was made from those. A system message of which nothing
is known is an instruction and no source. A stage is called what a framework calls its node, task or
agent, on the call's span or on one around it; otherwise as the span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from spanlab.datasets import reader
from spanlab.datasets.cells import text_of_message
from spanlab.datasets.files import FileRow
from spanlab.datasets.formats.observations import (
    holds_observations,
    is_observation,
    parse_json,
    spans_of,
)
from spanlab.datasets.json_rows import is_single, printed_objects
from spanlab.datasets.limits import TOGETHER, too_many
from spanlab.errors import InputError, UsageError
from spanlab.recording import Recorder
from spanlab.schema import Record

_MODELS: Final = frozenset(("LLM",))
_FOUND: Final = ("retrieval.documents", "reranker.output_documents")
_ASKED: Final = ("question", "query", "input", "prompt", "content", "messages")
_CALLS: Final = frozenset(("chat", "text_completion", "generate_content", "completion"))

# Where frameworks say which node, task or agent of theirs a span belongs to: LangGraph,
# OpenInference (LangChain, LlamaIndex, CrewAI), OpenLLMetry, and OpenTelemetry's own for agents.
_STAGES: Final = (
    *("langgraph_node", "langgraph.node", "metadata.langgraph_node"),
    *("langsmith.metadata.langgraph_node", "traceloop.association.properties.langgraph_node"),
    *("graph.node.name", "graph.node.id", "crewai.task.name", "crewai.agent.role"),
    *("llama_index.step.name", "traceloop.entity.name", "gen_ai.task.name", "gen_ai.agent.name"),
)

_METADATA: Final = ("metadata", "langfuse.observation.metadata")  # that are objects, or their JSON


class _TracedMessage(NamedTuple):
    role: str
    text: str


class TraceReader(reader.FormatReader):
    """Reads the traces of a file, each with the number of the line on which it begins."""

    signatures = (
        frozenset(("resourceSpans",)),
        frozenset(("resource_spans",)),
        frozenset(("context", "attributes")),
        frozenset(("traceId", "type", "input", "output")),
        frozenset(("trace_id", "type", "input", "output")),
        frozenset(("trace", "observations")),
        frozenset(("id", "input", "output", "observations")),
    )

    @classmethod
    def recognises(cls, record: Mapping[str, object]) -> bool:
        """Say whether a record holds spans or is one; lists in its place are of other things."""
        lists = (isinstance(record.get(name), list) for name in ("context", "attributes"))
        return super().recognises(record) and not any(lists)

    def rows(self) -> Iterator[FileRow]:
        """Yield the spans of each trace as one row.

        Raises:
            InputError: the file is not JSON, or a span of it has no trace.
        """
        traces: dict[str, list[dict[str, Any]]] = {}
        lines: dict[str, int] = {}
        size = 0
        for row in self._requests():
            size += len(row.raw)
            if size > TOGETHER * self._file.limit:
                raise too_many("the file", self._file.limit, self._file.name, row.line)
            try:
                for span in spans_in(from_json(row.raw)):
                    lines.setdefault(span["trace"], row.line)
                    traces.setdefault(span["trace"], []).append(span)
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                raise InputError(
                    f"not an OpenTelemetry span: {error}", file=self._file.name, line=row.line
                ) from None
        for trace, spans in traces.items():
            yield FileRow(lines[trace], to_json(spans))

    def _requests(self) -> Iterator[FileRow]:
        """Yield what holds spans; lines of a log between them are no JSON objects."""
        if self._file.head().lstrip().startswith(b"["):
            yield from self._file.rows()
        elif is_single(self._file):
            yield FileRow(1, to_json(self._file.load()))
        else:
            yield from (
                row for row in printed_objects(self._file) if row.beginning.startswith(b"{")
            )

    def _record(self, row: FileRow) -> Record:
        return record_of(from_json(row.raw))


def record_of(unordered: Sequence[Mapping[str, Any]]) -> Record:
    """Return the record of a trace: its question, answer and process, told from its spans.

    Raises:
        InputError: none of them has a model's answer.
    """
    spans = sorted(unordered, key=itemgetter("start"))
    recorder = Recorder()
    by_id = {str(span["id"]): span for span in spans if span.get("id")}
    for span in sorted(spans, key=itemgetter("end")):
        note_span(recorder, span, stage_of(span, by_id))
    try:
        item = recorder.item(str(spans[0]["trace"]), _question(spans))
    except UsageError:
        raise InputError(
            "no span of this trace has a model's answer",
            found=f"spans {', '.join(str(span['name']) for span in spans[:5])}",
            expected="the attributes of OpenInference or gen_ai.*, or Langfuse's generations",
        ) from None
    return Record(item=item)


def spans_in(request: Any) -> Iterator[dict[str, Any]]:
    """Yield the spans of an OTLP request, or the one that was printed, in one form."""
    if is_observation(request) or holds_observations(request):
        yield from spans_of(request)
        return
    if "attributes" in request and "context" in request:
        context, attributes = request["context"], request["attributes"]
        yield {
            "trace": str(context["trace_id"]).removeprefix("0x"),
            "id": context.get("span_id"),
            "parent": request.get("parent_id"),
            "name": request.get("name", ""),
            "start": str(request.get("start_time", "")),
            "end": str(request.get("end_time", "")),
            "attributes": flat(attributes),
        }
        return
    for resource in request.get("resourceSpans") or request.get("resource_spans") or ():
        for scope in resource.get("scopeSpans") or resource.get("scope_spans") or ():
            for span in scope["spans"]:
                yield {
                    "trace": span.get("traceId") or span["trace_id"],
                    "id": span.get("spanId") or span.get("span_id"),
                    "parent": span.get("parentSpanId") or span.get("parent_span_id"),
                    "name": span.get("name", ""),
                    "start": _nanoseconds(span, "startTimeUnixNano", "start_time_unix_nano"),
                    "end": _nanoseconds(span, "endTimeUnixNano", "end_time_unix_nano"),
                    "attributes": {
                        attribute["key"]: _value(attribute["value"])
                        for attribute in span.get("attributes", ())
                    },
                }


def _nanoseconds(span: Mapping[str, Any], *names: str) -> str:
    return str(next((span[name] for name in names if name in span), "")).zfill(20)


def _value(value: Mapping[str, Any]) -> Any:
    """Return what an OTLP value holds."""
    for kind, content in value.items():
        if kind in ("arrayValue", "array_value"):
            return [_value(inner) for inner in content.get("values", ())]
        if kind in ("kvlistValue", "kvlist_value"):
            return {
                attribute["key"]: _value(attribute["value"])
                for attribute in content.get("values", ())
            }
        return content
    return None


def flat(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes by their dotted names; some exports nest them."""
    return dict(_flat("", attributes))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for index, inner in enumerate(value):
            yield from _flat(f"{name}.{index}", inner)
    else:
        yield name, value


def stage_of(span: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what a framework calls the part of a pipeline that a span belongs to."""
    enclosing: Mapping[str, Any] | None = span
    n_spans = 0
    while enclosing is not None and n_spans < len(by_id):
        if name := _stage_name(enclosing["attributes"]):
            return name
        enclosing = by_id.get(str(enclosing.get("parent")))
        n_spans += 1
    return _stage_name(span["attributes"]) or str(span["name"] or "model call")


def _stage_name(attributes: Mapping[str, Any]) -> str:
    metadata = dict(attributes)
    for name in _METADATA:
        inner = parse_json(attributes.get(name))
        metadata |= inner if isinstance(inner, dict) else {}
    return next((str(metadata[name]) for name in _STAGES if metadata.get(name)), "")


def note_span(recorder: Recorder, span: Mapping[str, Any], stage: str) -> None:
    """Note what a span retrieved, or what a model call read and wrote."""
    attributes = span["attributes"]
    for name in _FOUND:
        for document in _list(attributes, name):
            recorder.source(str(document.get("document.content") or ""))
    kind = str(attributes.get("openinference.span.kind", "")).upper()
    operation = str(attributes.get("gen_ai.operation.name", ""))
    if kind in _MODELS or operation in _CALLS or "gen_ai.completion.0.content" in attributes:
        replies = [message.text for message in _messages(attributes, read=False)]
        recorder.call(_messages(attributes, read=True), replies, stage)


def _messages(attributes: Mapping[str, Any], *, read: bool) -> Sequence[_TracedMessage]:
    """Return the messages that a call read or wrote, by the first convention that has any."""
    side = "input" if read else "output"
    messages = [
        _TracedMessage(str(message.get("message.role") or ""), _content(message))
        for message in _list(attributes, f"llm.{side}_messages")
    ]
    messages = messages or [
        _TracedMessage(str(message.get("role") or ""), str(message.get("content") or ""))
        for message in _list(attributes, "gen_ai.prompt" if read else "gen_ai.completion")
    ]
    messages = messages or list(_read_structured(attributes.get(f"gen_ai.{side}.messages")))
    if not any(message.text.strip() for message in messages):
        messages = [_TracedMessage("", str(attributes.get(f"{side}.value") or ""))]
    return [message for message in messages if message.text.strip()]


def _content(message: Mapping[str, Any]) -> str:
    text = str(message.get("message.content") or "")
    parts = [
        str(value)
        for key, value in message.items()
        if key.startswith("message.contents.") and key.endswith("message_content.text")
    ]
    return text or "\n".join(parts)


def _read_structured(value: Any) -> Iterator[_TracedMessage]:
    """Yield the messages of ``gen_ai.input.messages`` and its like: a chat, or JSON with parts."""
    messages = parse_json(value)
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") or ()
        texts = [str(part.get("content") or "") for part in parts if part.get("type") == "text"]
        text = "\n".join(texts) if parts else text_of_message(message)
        yield _TracedMessage(str(message.get("role") or ""), text)


def _list(attributes: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects that a list of attributes such as ``name.0.key`` holds, in order."""
    by_index: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        number, _, field = key.removeprefix(f"{name}.").partition(".")
        if key.startswith(f"{name}.") and number.isdecimal():
            by_index.setdefault(int(number), {})[field] = value
    return [by_index[number] for number in sorted(by_index)]


def _question(spans: Sequence[Mapping[str, Any]]) -> str:
    """Return what was asked: the input of the first span that has one."""
    for span in spans:
        value = span["attributes"].get("input.value")
        if isinstance(value, str) and value.strip():
            return _question_in(parse_json(value)) or value
        messages = [
            message
            for message in _messages(span["attributes"], read=True)
            if message.role == "user"
        ]
        if messages:
            return messages[-1].text
    return ""


def _question_in(value: Any) -> str:
    """Return the question in an input that is JSON; empty if it has none."""
    if isinstance(value, list) and value:
        return _question_in(value[-1])
    if isinstance(value, dict):
        return next((text for key in _ASKED if (text := _question_in(value.get(key)))), "")
    return value if isinstance(value, str) else ""

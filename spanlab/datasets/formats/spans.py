"""What spans of traces say, whichever convention and program they come from; see ``span_files``.

Read are attributes and events of OpenInference, OpenLLMetry, OpenTelemetry's conventions for
generative models (``gen_ai.*``, all their generations), pydantic-ai, Vercel's AI SDK, MLflow,
Langfuse, Google's ADK and Haystack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from spanlab.datasets.cells import is_reply, text_of_reply
from spanlab.datasets.chats import is_chat, is_message, text_of_message, without_classes
from spanlab.datasets.formats.observations import parse_json
from spanlab.datasets.formats.span_files import EVENTS, flat, plain_list
from spanlab.datasets.reader import passages_of
from spanlab.errors import InputError

Span = Mapping[str, Any]

# What a span is for, by the words that conventions have for it.
_KINDS: Final = {
    **dict.fromkeys(("llm", "chat_model", "generation", "chat", "text_completion"), "model"),
    **dict.fromkeys(("generate_content", "completion", "ai.generatetext.dogenerate"), "model"),
    **dict.fromkeys(("chat.completions", "call_llm"), "model"),
    **dict.fromkeys(("ai.streamtext.dostream", "ai.generateobject.dogenerate"), "model"),
    **dict.fromkeys(("retriever", "reranker", "retrieval", "vector_db_retrieve"), "retriever"),
    **dict.fromkeys(("tool", "execute_tool", "ai.toolcall"), "tool"),
    **dict.fromkeys(("guardrail", "evaluator", "guard"), "aside"),
}
_OF_MODELS: Final = frozenset(("gen_ai.completion.0.content", "gcp.vertex.agent.llm_response"))
_COMPONENTS: Final = {"Generator": "model", "Retriever": "retriever", "Ranker": "retriever"}
_SAYS_KIND: Final = (
    *("openinference.span.kind", "mlflow.spanType", "langfuse.observation.type", "ai.operationId"),
    *("operation.name", "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type"),
)
_INPUTS: Final = (
    *("input.value", "traceloop.entity.input", "gen_ai.task.input", "mlflow.spanInputs"),
    *("langfuse.observation.input", "ai.prompt", "ai.toolCall.args", "gen_ai.tool.call.arguments"),
    *("gcp.vertex.agent.llm_request", "haystack.component.input", "haystack.pipeline.input_data"),
)
_OUTPUTS: Final = (
    *("output.value", "traceloop.entity.output", "gen_ai.task.output", "mlflow.spanOutputs"),
    *("langfuse.observation.output", "ai.response.text", "final_result", "ai.toolCall.result"),
    *("gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.llm_response"),
    *("gcp.vertex.agent.tool_response", "haystack.component.output"),
    "haystack.pipeline.output_data",
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
    "result",
    "chunks",
    "nodes",
)
_OF_APIS: Final = (
    "choices",
    "generations",
    "tool_calls",
    "message",
    "parts",
)  # of replies, also empty
_QUERY_RESULT: Final = "db.query.result.document"  # of OpenLLMetry's events, one a document


class TracedMessage(NamedTuple):
    """What somebody said in a model's call."""

    role: str
    text: str


def kind_of(span: Span) -> str:
    """Return what a span is for: "model", "retriever", "tool", "aside" (a guard) or ""."""
    attributes = span["attributes"]
    for name in _SAYS_KIND:
        said = attributes.get(name)
        said = parse_json(said) if name.startswith("mlflow") else said
        if kind := _KINDS.get(str(said).lower()):
            return kind
    if not attributes.keys().isdisjoint(_OF_MODELS):
        return "model"
    component = str(attributes.get("haystack.component.type"))
    if kind := next((kind for word, kind in _COMPONENTS.items() if word in component), ""):
        return kind
    is_query = any(_QUERY_RESULT in event for event in events_of(span))
    return "retriever" if is_query else ""


def events_of(span: Span) -> list[dict[str, Any]]:
    """Return a span's events, by the names of their attributes."""
    events = parse_json(span["attributes"].get(EVENTS))
    return [event for event in plain_list(events) if isinstance(event, dict)]


def input_of(span: Span) -> Any:
    """Return what a span was given, unpacked; None if it does not say."""
    return _unpacked(_first(span["attributes"], _INPUTS), ("inputs", "input"))


def output_of(span: Span) -> Any:
    """Return what a span gave back, unpacked; None if it does not say."""
    value = _unpacked(_first(span["attributes"], _OUTPUTS), ("outputs",))
    inner = value.get("content") if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) and "parts" in inner else value


def _first(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name)), None)


def _unpacked(value: Any, around: Sequence[str]) -> Any:
    """Return a value without what programs put around it: JSON, a wrapper, LangChain's classes."""
    inner = parse_json(value)
    inner = without_classes(value if inner is None else inner)
    for name in around:
        if isinstance(inner, dict) and name in inner:
            return _unpacked(inner[name], ())
    return inner


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
    if isinstance(value, dict) and isinstance(value.get("content"), list):  # of a tool by MCP
        value = value["content"]
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
    for message in plain_list(parse_json(value)):
        if not isinstance(message, dict):
            continue
        role = str(message.get("role") or "")
        parts = [part for part in plain_list(message.get("parts")) if isinstance(part, dict)]
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
    if isinstance(value, dict) and isinstance(value.get("contents"), list):
        value = value["contents"]
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

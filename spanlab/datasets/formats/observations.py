"""Langfuse's observations, and LangSmith's runs, as spans: what exports of traces hold.

{"traceId", "id", "parentObservationId", "type", "name", "startTime", "endTime",
     "input", "output", "metadata"}

one a line, in an array or in ``data``, with names of either style (``trace_id``), or in a trace
under ``observations``. LangSmith says ``run_type``, ``parent_run_id``, ``inputs`` and ``outputs``.
Inputs and outputs may be JSON in a text. A generation is a model call; what a retriever or a tool
returned is a source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import to_json

from spanlab.datasets.cells import is_reply, text_of_reply
from spanlab.datasets.chats import is_chat, is_message, without_classes
from spanlab.datasets.reader import passages_of, text_of
from spanlab.errors import InputError
from spanlab.schema import storable

_CALLS: Final = frozenset(("GENERATION", "LLM"))
_SOURCES: Final = frozenset(("RETRIEVER", "TOOL"))
_CHILDREN: Final = "child_runs"  # where LangSmith nests runs, a run is a record with all in it
_ABOUT: Final = {  # what a trace says of itself
    "sessionId": "langfuse.session.id",
    "userId": "langfuse.user.id",
    "tags": "langfuse.trace.tags",
    "environment": "langfuse.environment",
}
_LISTS: Final = ("documents", "passages", "contexts", "results", "chunks", "nodes")


def is_observation(value: Any) -> bool:
    """Say whether a JSON value is an observation."""
    if not isinstance(value, dict) or not value.keys() & {"traceId", "trace_id"}:
        return False
    return "type" in value or ({"run_type", "inputs"} <= value.keys() and not value.get(_CHILDREN))


def holds_observations(value: Any) -> bool:
    """Say whether a JSON value is a trace with its observations, or a page of them."""
    return isinstance(value, dict) and (
        isinstance(value.get("observations"), list) or is_page(value)
    )


def is_page(value: Mapping[str, Any]) -> bool:
    """Say whether a JSON object is a page of observations, as Langfuse's API replies."""
    listed = value.get("data")
    return isinstance(listed, list) and bool(listed) and is_observation(listed[0])


def spans_of(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the spans that an observation, or each of a trace, is, in the form of ``traces``.

    Raises:
        KeyError: one has no trace.
    """
    if not holds_observations(value):
        yield _span(value, "")
        return
    if is_page(value):
        yield from (_span(observation, "") for observation in value["data"])
        return
    inner = value.get("trace")
    trace = inner if isinstance(inner, dict) else value
    about = {ours: trace[theirs] for theirs, ours in _ABOUT.items() if trace.get(theirs)}
    for observation in value["observations"]:
        span = _span(observation, str(trace.get("id") or ""))
        yield {**span, "attributes": {**about, **span["attributes"]}}


def _span(observation: Mapping[str, Any], trace: str) -> dict[str, Any]:
    def field(camel: str, snake: str) -> Any:
        return observation.get(camel, observation.get(snake))

    start = str(field("startTime", "start_time") or "")
    return {
        "trace": field("traceId", "trace_id") or trace or observation["traceId"],
        "id": observation.get("id"),
        "parent": field("parentObservationId", "parent_observation_id")
        or observation.get("parent_run_id"),
        "name": observation.get("name") or "",
        "start": start,
        "end": str(field("endTime", "end_time") or start),
        "attributes": dict(_attributes(observation)),
    }


def _attributes(observation: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what an observation says as OpenInference would say it."""
    kind = str(observation.get("run_type", observation.get("type", ""))).upper()
    input_value, output_value = (
        without_classes(_parse_content(observation.get(f"{name}s", observation.get(name))))
        for name in ("input", "output")
    )
    yield "metadata", observation.get("metadata")
    yield "input.value", text_of(input_value) or ""
    if kind in _SOURCES:
        for number, text in enumerate(_texts(output_value)):
            yield f"retrieval.documents.{number}.document.content", text
    if kind in _CALLS:
        yield "openinference.span.kind", "LLM"
        yield "output.value", text_of(output_value) or ""
        for side, value in (("input", input_value), ("output", output_value)):
            if chat := _messages(value):
                yield f"gen_ai.{side}.messages", to_json(chat).decode()


def _messages(value: Any) -> list[Any]:
    """Return the chat that a value is or holds; empty if there is none."""
    if is_message(value):
        return [value]
    if is_reply(value):
        return [{"role": "assistant", "content": text_of_reply(value)}]
    chat = value.get("messages") if isinstance(value, dict) else value
    chat = chat[0] if isinstance(chat, list) and chat and isinstance(chat[0], list) else chat
    return chat if isinstance(chat, list) and is_chat(chat) else []


def _texts(value: Any) -> list[str]:
    """Return the texts that a retriever or a tool returned."""
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if name in value), value)
    if isinstance(value, dict) and isinstance(value.get("content"), list):  # of a tool by MCP
        value = value["content"]
    try:
        return [passage.text for passage in passages_of(value, "output")]
    except InputError:
        return [text_of(value) or ""]


def parse_json(value: Any) -> Any:
    """Return what a text is in JSON, None if it is none; another value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return storable(json.loads(value))
    except (ValueError, RecursionError):
        return None


def _parse_content(value: Any) -> Any:
    """Return a value, or the object, list or text that its text is in JSON."""
    inner = parse_json(value)
    return inner if isinstance(inner, dict | list | str) else value

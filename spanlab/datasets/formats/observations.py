"""Langfuse's observations as spans: what its exports and downloads of traces hold.

{"traceId", "id", "parentObservationId", "type", "name", "startTime", "endTime",
     "input", "output", "metadata"}

one a line or in an array, with names of either style (``trace_id``), or in a trace under
``observations``. Inputs and outputs may be JSON in a text. A generation is a model call; what a
retriever or a tool returned is a source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import to_json

from spanlab.datasets.cells import is_chat, is_message, is_reply, text_of_reply
from spanlab.datasets.reader import passages_of, text_of
from spanlab.errors import InputError
from spanlab.schema import storable

_CALLS: Final = frozenset(("GENERATION",))
_SOURCES: Final = frozenset(("RETRIEVER", "TOOL"))
_LISTS: Final = ("documents", "passages", "contexts", "results", "chunks", "nodes")


def is_observation(value: Any) -> bool:
    """Say whether a JSON value is an observation."""
    return (
        isinstance(value, dict) and "type" in value and bool(value.keys() & {"traceId", "trace_id"})
    )


def holds_observations(value: Any) -> bool:
    """Say whether a JSON value is a trace with its observations."""
    return isinstance(value, dict) and isinstance(value.get("observations"), list)


def spans_of(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the spans that an observation, or each of a trace, is, in the form of ``traces``.

    Raises:
        KeyError: one has no trace.
    """
    if not holds_observations(value):
        yield _span(value, "")
        return
    about = value.get("trace")
    trace = about if isinstance(about, dict) else value
    for observation in value["observations"]:
        yield _span(observation, str(trace.get("id") or ""))


def _span(observation: Mapping[str, Any], trace: str) -> dict[str, Any]:
    def field(camel: str, snake: str) -> Any:
        return observation.get(camel, observation.get(snake))

    start = str(field("startTime", "start_time") or "")
    return {
        "trace": field("traceId", "trace_id") or trace or observation["traceId"],
        "id": observation.get("id"),
        "parent": field("parentObservationId", "parent_observation_id"),
        "name": observation.get("name") or "",
        "start": start,
        "end": str(field("endTime", "end_time") or start),
        "attributes": dict(_attributes(observation)),
    }


def _attributes(observation: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what an observation says as OpenInference would say it."""
    kind = str(observation.get("type", "")).upper()
    input_value, output_value = (
        _parse_content(observation.get("input")),
        _parse_content(observation.get("output")),
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
    return chat if isinstance(chat, list) and is_chat(chat) else []


def _texts(value: Any) -> list[str]:
    """Return the texts that a retriever or a tool returned."""
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if name in value), value)
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

"""Recorded spans as OpenTelemetry's SDK has them when it sends them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from spanlab.traces.span_files import nanoseconds

RECORDED = Path(__file__).parents[1] / "cli" / "peers" / "traces"


def recorded_spans(file: Path) -> Iterator[ReadableSpan]:
    """Yield the spans of a recording, which is printed spans, also in a list."""
    return map(_span, values_in(file))


def values_in(file: Path) -> Iterator[Any]:
    """Yield the objects of a file, which stand one behind the other, also in lists."""
    text = file.read_text("utf-8")
    while text:
        value, end = json.JSONDecoder().raw_decode(text)
        yield from value if isinstance(value, list) else [value]
        text = text[end:].lstrip()


def _span(shown: Mapping[str, Any]) -> ReadableSpan:
    def context(span: str) -> SpanContext:
        trace = int(shown["context"]["trace_id"], 16)
        return SpanContext(trace, int(span, 16), is_remote=False, trace_flags=TraceFlags(1))

    status = str(shown["status"].get("status_code") or "UNSET")
    return ReadableSpan(
        shown["name"],
        context(shown["context"]["span_id"]),
        parent=context(shown["parent_id"]) if shown["parent_id"] else None,
        resource=Resource(shown.get("resource", {}).get("attributes") or {}),
        attributes=shown["attributes"],
        events=[
            Event(event["name"], event.get("attributes"), nanoseconds(event.get("timestamp")))
            for event in shown.get("events") or ()
        ],
        kind=SpanKind[str(shown.get("kind", "INTERNAL")).removeprefix("SpanKind.")],
        status=Status(StatusCode[status]),
        start_time=nanoseconds(shown["start_time"]),
        end_time=nanoseconds(shown["end_time"]),
    )

"""What detectors say, as OpenTelemetry's events ``gen_ai.evaluation.result``, for a collector.

It is the one that OTEL_EXPORTER_OTLP_ENDPOINT names, asked with the SDK's other variables. Events
are sent by a thread of their own, some at once; what a collector does not take is dropped, and a
run waits for none of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from spanlab.errors import UsageError, missing_package
from spanlab.extents import length
from spanlab.labels import hard_of
from spanlab.schema import Annotation, Item, Status

if TYPE_CHECKING:
    from opentelemetry._logs import Logger

NAME: Final = "gen_ai.evaluation.result"
_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
_TRACE: Final = 32  # hexadecimal digits of a trace's id, which items from traces have


def event_sender() -> Callable[[Item, Annotation], None]:
    """Return what sends an item's annotation as an event; it is called and returns at once.

    Raises:
        UsageError: no variable names a collector, or the packages of the extra ``otel`` lack.
    """
    if not any(map(os.environ.get, _VARIABLES)):
        raise UsageError(f"events go to a collector: set {_VARIABLES[0]}, or leave out --events")
    logger = _logger()
    from opentelemetry import trace

    def send(item: Item, annotation: Annotation) -> None:
        trace_id = int(item.id, 16) if _is_trace(item.id) else 0
        around = trace.NonRecordingSpan(trace.SpanContext(trace_id, span_id=0, is_remote=True))
        logger.emit(
            event_name=NAME,
            attributes=attributes_of(item, annotation),
            context=trace.set_span_in_context(around),
        )

    return send


def attributes_of(item: Item, annotation: Annotation) -> dict[str, Any]:
    """Return what an event says.

    The score is the share of the answer's characters, in [0, 1], that are more likely hallucinated
    than not; ``spanlab.spans`` is JSON with offsets in Unicode code points. A detector that failed
    has no score, and the reason as explanation.
    """
    told = {
        "gen_ai.evaluation.name": "hallucination",
        "spanlab.annotator": annotation.annotator,
        "spanlab.item": item.id,
    }
    if annotation.status is not Status.DONE:
        reason = annotation.note or str(annotation.status)
        return {**told, "error.type": "_OTHER", "gen_ai.evaluation.explanation": reason}
    hard = hard_of(annotation)
    notes = [f"“{span.text}”: {span.note or 'not supported'}" for span in annotation.spans]
    fields = {"start", "end", "text", "prob", "label"}
    spans = [span.model_dump(include=fields, exclude_none=True) for span in annotation.spans]
    return {
        **told,
        "gen_ai.evaluation.score.value": length(hard) / max(len(item.answer), 1),
        "gen_ai.evaluation.score.label": "hallucinated" if hard else "grounded",
        "gen_ai.evaluation.explanation": "\n".join(notes),
        "spanlab.spans": to_json(spans).decode(),
    }


def _is_trace(name: str) -> bool:
    return len(name) == _TRACE and set(name) <= set("0123456789abcdef")


@cache
def _logger() -> Logger:
    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.resources import Resource
    except ModuleNotFoundError as error:
        raise missing_package("sending events", error.name, "otel") from None
    named = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "spanlab")}
    provider = LoggerProvider(Resource.create(named))  # at exit it sends what is left
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    return provider.get_logger("spanlab")

"""Notices to other programs: signed webhooks, and events of OpenTelemetry."""

from __future__ import annotations

import asyncio
import atexit
import hmac
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import JsonValue
from pydantic_core import to_json

from spanlab.base.errors import UsageError, missing_package
from spanlab.base.runtime import submit
from spanlab.base.settings import Settings
from spanlab.schema import Annotation, Item, Status
from spanlab.text.extents import length
from spanlab.text.labels import hard_of

if TYPE_CHECKING:
    import httpx
    from opentelemetry._logs import Logger


SIGNATURE: Final = "X-Spanlab-Signature"
_SECONDS: Final = 10.0  # that an attempt may take in all
_PAUSES: Final = (1.0, 10.0, 60.0)  # seconds before another attempt; then it is given up
_WAITING: Final = 1000  # notices under way at once; further ones are dropped
_AT_EXIT: Final = 15.0  # seconds that a process that ends waits for them
_LOG: Final = logging.getLogger(__name__)


def notify(event: str, key: str = "", **fields: JsonValue) -> None:
    """Send an event to all configured webhooks; returns at once, and failures are only logged.

    Args:
        event: "item done" or "job done".
        key: the notice's ``id``, the same if it is sent twice; empty for a new one.
        **fields: further fields of the notice's JSON.

    Raises:
        UsageError: the environment names addresses without a secret, or something unusable.
    """
    settings = Settings.read()
    if not settings.webhooks:
        return
    body = to_json({"event": event, "id": key or uuid4().hex, "at": time.time(), **fields})
    signature = hmac.digest(settings.webhook_secret.encode(), body, "sha256").hex()
    headers = {"Content-Type": "application/json", SIGNATURE: f"sha256={signature}"}
    for url in map(str, settings.webhooks):
        if len(_under_way()) < _WAITING:
            notice = submit(_deliver(url, headers, body))
            _under_way().add(notice)
            notice.add_done_callback(_under_way().discard)
        else:
            _LOG.warning("%s was not told of %s: too many wait", urlsplit(url).hostname, event)


@cache
def _under_way() -> set[Future[None]]:
    under_way: set[Future[None]] = set()
    atexit.register(lambda: wait(list(under_way), _AT_EXIT))
    return under_way


@cache
def _client() -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False)


async def _deliver(url: str, headers: dict[str, str], body: bytes) -> None:
    """Send one notice, and try again if it fails; only the status of the reply is read."""
    problem = ""
    for pause in (0.0, *_PAUSES):
        await asyncio.sleep(pause)
        try:
            async with (
                asyncio.timeout(_SECONDS),
                _client().stream("POST", url, headers=headers, content=body) as reply,
            ):
                if reply.is_success:
                    return
                problem = f"it answers {reply.status_code}"
        except Exception as error:  # noqa: BLE001 - whatever the other side does, it ends nothing here
            problem = type(error).__name__
    _LOG.warning("%s was not told: %s", urlsplit(url).hostname, problem)


NAME: Final = "gen_ai.evaluation.result"
_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
_TRACE, _SPAN = 32, 16  # hexadecimal digits of the ids of OpenTelemetry's traces and spans
_UNNAMED: Final = "span "  # how ids begin that an import gave to spans without one


def event_sender() -> Callable[[Item, Annotation], None]:
    """Return a function that sends an item's annotation as an event, and returns at once.

    Raises:
        UsageError: no variable names a collector, or the packages of the extra ``otel`` lack.
    """
    if not any(map(os.environ.get, _VARIABLES)):
        raise UsageError(f"events go to a collector: set {_VARIABLES[0]}, or leave out --events")
    logger = _logger()
    from opentelemetry import trace

    def send(item: Item, annotation: Annotation) -> None:
        trace_id, span_id = map(_number, trace_of(item), (_TRACE, _SPAN))
        around = trace.NonRecordingSpan(trace.SpanContext(trace_id, span_id, is_remote=True))
        logger.emit(
            event_name=NAME,
            attributes=attributes_of(item, annotation),
            context=trace.set_span_in_context(around),
        )

    return send


def attributes_of(item: Item, annotation: Annotation) -> dict[str, Any]:
    """Return the attributes of the event for an annotation.

    The score is the share of the answer's characters, in [0, 1], that the annotator marks as
    hallucinated; ``spanlab.spans`` is JSON with offsets in Unicode code points. A detector that
    failed has no score, and the reason as explanation.
    """
    attributes = {
        "gen_ai.evaluation.name": "hallucination",
        "spanlab.annotator": annotation.annotator,
        "spanlab.item": item.id,
    }
    if annotation.status is not Status.DONE:
        reason = annotation.note or str(annotation.status)
        return {**attributes, "error.type": "_OTHER", "gen_ai.evaluation.explanation": reason}
    notes = [f"“{span.text}”: {span.note or 'not supported'}" for span in annotation.spans]
    return {
        **attributes,
        "gen_ai.evaluation.score.value": share_of(item, annotation),
        "gen_ai.evaluation.score.label": "hallucinated" if annotation.hallucinated else "grounded",
        "gen_ai.evaluation.explanation": "\n".join(notes),
        "spanlab.spans": to_json(spans_of(annotation)).decode(),
    }


def share_of(item: Item, annotation: Annotation) -> float:
    """Return the share of the answer's characters that the annotator marks as hallucinated.

    Of a verdict without a place it is 1 for a hallucinated answer, 0 for any other.
    """
    if annotation.is_verdict_only:
        return float(bool(annotation.hallucinated))
    return length(hard_of(annotation)) / max(len(item.answer), 1)


def spans_of(annotation: Annotation) -> list[dict[str, Any]]:
    """Return the spans as JSON for other programs, with offsets in Unicode code points."""
    fields = {"start", "end", "text", "prob", "label"}
    return [span.model_dump(include=fields, exclude_none=True) for span in annotation.spans]


def trace_of(item: Item) -> tuple[str, str]:
    """Return the ids of the trace and the span that an item came from, each "" if there is none."""
    trace, span = (str(item.meta.get(name) or "") for name in ("trace_id", "span_id"))
    if not trace and _number(item.id, _TRACE):
        trace = item.id
    return trace, "" if span.startswith(_UNNAMED) else span


def _number(digits: str, length: int) -> int:
    """Return an id of so many hexadecimal digits; 0 for another, such as one of Langfuse."""
    is_id = len(digits) == length and set(digits) <= set("0123456789abcdef")
    return int(digits, 16) if is_id else 0


@cache
def _logger() -> Logger:
    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.resources import Resource
    except ModuleNotFoundError as error:
        raise missing_package("sending events", error.name, "otel") from None
    resource = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "spanlab")}
    provider = LoggerProvider(Resource.create(resource))  # at exit it sends what is left
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    return provider.get_logger("spanlab")

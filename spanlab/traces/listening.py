"""What a pipeline asks models, heard without a change to it.

    with spanlab.record() as process:
        answer = my_pipeline(question)
    item = process.item("1", question)

Calls of ``openai`` (chat, responses and embeddings; sync, async, streams) are heard where its
client sends them; the step is called what the function is that calls. Frameworks are heard through
spans of OpenTelemetry that end meanwhile, with the attributes of OpenInference or ``gen_ai.*``.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from inspect import isawaitable
from threading import Lock
from typing import Any, Final, cast

from spanlab.formats.chats import plain_chat, text_of_message
from spanlab.traces.recording import Recorder, current, passed_on, passed_on_async
from spanlab.traces.recording import record as recording
from spanlab.traces.span_files import flat
from spanlab.traces.spans import kind_of
from spanlab.traces.trace import note_span, stage_of

_CHAT: Final = "/chat/completions"
_RESPONSES: Final = "/responses"
_EMBEDDINGS: Final = "/embeddings"
_BETWEEN: Final = frozenset(  # packages between a pipeline's function and openai
    (
        *("asyncio", "concurrent", "contextlib", "functools", "openai", "spanlab", "tenacity"),
        "threading",
    )
)
_CALL: Final = "model call"
_LOCK: Final = Lock()
_PLAIN: Final[dict[Any, tuple[Any, Any]]] = {}  # client → how it sends by itself, and heard
_PROVIDERS: Final[list[object]] = []  # of spans, that are heard
_open = 0


@contextmanager
def record() -> Iterator[Recorder]:
    """Record decorated functions, calls of openai and spans for as long as the block runs.

    Threads that the block starts are recorded, too, unless two recordings are open at once.
    """
    _listen(1)
    try:
        with recording() as recorder:
            yield recorder
    finally:
        _listen(-1)


def _listen(more: int) -> None:
    """Hear openai's clients from the first recording that opens to the last that closes."""
    global _open  # noqa: PLW0603 -- how many recordings of the process are open
    from openai._base_client import AsyncAPIClient, SyncAPIClient

    with _LOCK:
        _open += more
        clients: Sequence[Any] = (SyncAPIClient, AsyncAPIClient)
        for client in clients:
            if client not in _PLAIN:
                _PLAIN[client] = client.request, _hearing(client.request)
                setattr(client, "request", _PLAIN[client][1])  # noqa: B010 -- a type's method
            elif not _open and client.request is _PLAIN[client][1]:  # nobody wrapped it since
                setattr(client, "request", _PLAIN.pop(client)[0])  # noqa: B010 -- as above
        if _open:
            _hear_spans()


def _hearing(send: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(send)
    def request(client: Any, cast_to: Any, options: Any, **kwargs: Any) -> Any:
        recorder, stage = current(), _caller()
        result = send(client, cast_to, options, **kwargs)
        if recorder is None:
            return result
        note = partial(_note, recorder, options, stage)
        return _awaited(result, note) if isawaitable(result) else note(result)

    return request


async def _awaited(result: Awaitable[Any], note: Callable[[Any], Any]) -> Any:
    return note(await result)


def _parsed(result: Any) -> Any:
    """Return what a raw response holds; openai keeps it for who asks next."""
    from openai._legacy_response import LegacyAPIResponse

    return result.parse() if isinstance(result, LegacyAPIResponse) else result


def _caller() -> str:
    """Return the name of the pipeline's function that calls openai."""
    frame = sys._getframe(2)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        name = frame.f_code.co_name
        if package not in _BETWEEN and not name.startswith("<"):
            return name
        if name == "<module>":
            break
        frame = cast(Any, frame.f_back)
    return _CALL


def _note(recorder: Recorder, options: Any, stage: str, result: Any) -> Any:
    """Note what a request asked and got, a stream's once it has ended; return the result."""
    body, url, reply = options.json_data, str(options.url), _parsed(result)
    if not isinstance(body, Mapping):
        return result
    if url.endswith(_EMBEDDINGS):
        texts = body.get("input")
        for text in texts if isinstance(texts, list) else ():  # one alone is a query
            if isinstance(text, str):
                recorder.source(text)
    elif url.endswith((_CHAT, _RESPONSES)):
        messages, events = list(_read(body)), getattr(reply, "_iterator", None)

        def note(came: Sequence[Any]) -> None:
            recorder.call(messages, _streamed(came), stage)

        if isinstance(events, Iterator):
            reply._iterator = passed_on(events, note)
        elif isinstance(events, AsyncIterator):
            reply._iterator = passed_on_async(events, note)
        else:
            recorder.call(messages, _written(reply), stage)
    return result


def _read(asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield role and text of what a request has a model read."""
    messages = asked.get("messages", asked.get("input"))
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    for message in plain_chat([m for m in messages or () if isinstance(m, Mapping)]):
        yield str(message.get("role") or ""), text_of_message(message)
    yield "system", str(asked.get("instructions") or "")


def _written(result: Any) -> list[str]:
    """Return the texts that a model wrote; a call of a tool is none."""
    if isinstance(text := getattr(result, "output_text", None), str):
        return [text]
    choices = getattr(result, "choices", None) or ()
    return [choice.message.content for choice in choices if choice.message.content]


def _streamed(events: Sequence[Any]) -> list[str]:
    """Return the texts that came in a stream, one for each choice."""
    texts: dict[int, str] = {}
    for event in events:
        choices = getattr(event, "choices", None) or ()
        pieces = [(each.index, getattr(each.delta, "content", None)) for each in choices]
        if getattr(event, "type", None) == "response.output_text.delta":
            pieces = [(0, event.delta)]
        for index, piece in pieces:
            texts[index] = texts.get(index, "") + (piece or "")
    return list(texts.values())


def _hear_spans() -> None:
    """Have the spans heard that the process makes, if it makes any; once for each provider."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if hasattr(provider, "add_span_processor") and provider not in _PROVIDERS:
        _PROVIDERS.append(provider)
        provider.add_span_processor(span_processor())


def span_processor() -> Any:
    """Return a span processor for a tracer provider; ``record`` adds one to the global provider."""
    from opentelemetry.sdk.trace import SpanProcessor

    class Listener(SpanProcessor):
        """Notes the spans that end while something records."""

        def __init__(self) -> None:
            self._running: dict[str, Any] = {}

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            if current() is not None:
                self._running[str(span.context.span_id)] = span

        def on_end(self, span: Any) -> None:
            recorder = current()
            started = self._running.pop(str(span.context.span_id), None)
            if recorder is not None and started is not None:
                by_id = {name: _as_read(running) for name, running in self._running.copy().items()}
                attributes = _as_read(span)
                stage = stage_of(attributes, {**by_id, attributes["id"]: attributes})
                if kind_of(attributes) != "agent":  # its calls are heard one by one
                    note_span(recorder, attributes, stage)

    return Listener()


def _as_read(span: Any) -> dict[str, Any]:
    """Return a span in the form in which files of traces are read."""
    return {
        "id": str(span.context.span_id),
        "parent": str(span.parent.span_id) if span.parent else None,
        "name": span.name,
        "attributes": flat(dict(span.attributes or {})),
    }

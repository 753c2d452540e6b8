"""Verdicts go back to where traces live: to Phoenix, Langfuse or MLflow, by their annotation APIs.

A verdict is a score, a label and an explanation; its spans are in the metadata. What is sent again
replaces what was sent: Phoenix knows it by an identifier, Langfuse by id and time, and MLflow by an
id of its own, which is looked up.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote, urlsplit

from pydantic_core import to_json

from spanlab.base.errors import PageError, SpanlabError, UsageError
from spanlab.base.inbound import bounding, one_line, reply_limit
from spanlab.base.redaction import redact, remember
from spanlab.base.runtime import ahead, wait
from spanlab.detection import asks_models
from spanlab.models.failures import ServerReport, quoted
from spanlab.output.figures import counted
from spanlab.output.notices import share_of, spans_of, trace_of
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Item,
    Permission,
    Record,
    Status,
    storable_json,
)
from spanlab.search.addresses import AGENT, certificates, check_url
from spanlab.storage.datasets import check_annotators, summary_of, with_progress
from spanlab.text.labels import hard_of

if TYPE_CHECKING:
    import httpx

    from spanlab.storage import Store

TraceHome = Literal["phoenix", "langfuse", "mlflow"]
SCORE: Final = "hallucination"  # what the score is called there
_AT_ONCE: Final = 8  # requests under way
_PAUSES: Final = (0.5, 2.0)  # seconds before another attempt
_LONGEST: Final = 60.0  # … that a server may ask to wait
_IN_A_ROW: Final = 5  # items that a server failed for, after which the others are not tried
_QUOTED: Final = 300  # characters of a span or note in an explanation
# The environment variables that hold the keys of each program.
ACCESS: Final[Mapping[TraceHome, tuple[str, ...]]] = {
    "phoenix": ("PHOENIX_API_KEY",),
    "langfuse": ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"),
    "mlflow": ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"),
}


@dataclass(frozen=True)
class PushRequest:
    """Whose verdicts go where; ``timeout`` is in seconds, of one request."""

    annotator: str
    to: TraceHome
    url: str
    timeout: float = 30.0


@dataclass(frozen=True)
class PushFailure:
    """Why an item's verdict was not taken; ``status`` is HTTP's, 0 if no reply came."""

    item: str
    status: int
    reason: str


@dataclass
class PushReport:
    """How many items were pushed, came from no trace, and are not annotated; and what failed."""

    pushed: int = 0
    untraced: int = 0
    unannotated: int = 0
    failures: list[PushFailure] = field(default_factory=list)

    def remarks(self) -> Iterator[str]:
        """Yield what people should know of the items that were not pushed: one failure a status."""
        if self.untraced:
            yield f"left out {counted(self.untraced, 'item')} that came from no trace"
        if self.unannotated:
            yield f"left out {counted(self.unannotated, 'item')} without a finished annotation"
        for status in dict.fromkeys(failure.status for failure in self.failures):
            first, *more = (failure for failure in self.failures if failure.status == status)
            yield f"{counted(1 + len(more), 'item')} failed; {first.item}: {first.reason}"

    @property
    def status(self) -> Literal[0, 1, 3]:
        """The exit status: 1 if nothing was pushed, 3 if some failed."""
        return 1 if not self.pushed else 3 if self.failures else 0


def push_dataset_verdicts(
    store: Store,
    dataset: str,
    request: PushRequest,
    on_progress: Callable[[int], None] | None = None,
) -> PushReport:
    """Send what an annotator says of a dataset's items back to where their traces live.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        request: whose verdicts go where.
        on_progress: called now and then with the number of items sent.

    Raises:
        NotFoundError: the dataset, or the annotator in it, does not exist.
        UsageError: see ``push_verdicts``.
    """
    store.require(Permission.EXPORT, dataset)
    check_annotators(summary_of(store, dataset), (request.annotator,))
    store.access.note("export", dataset, request.to)
    records = store.records(dataset, annotators=(request.annotator,))
    return push_verdicts(with_progress(records, on_progress), request)


def push_verdicts(records: Iterable[Record], request: PushRequest) -> PushReport:
    """Send what an annotator says of records back to where their traces live.

    Args:
        records: those without a trace, or not annotated, are counted and left out.
        request: whose verdicts go where.

    Raises:
        UsageError: there is no such program, the address is none, or a key is missing or unusable.
    """
    if request.to not in _SENDERS:
        raise UsageError(f"no verdicts go to {request.to!r}; they do to {', '.join(_SENDERS)}")
    report, server = PushReport(), _Server(request)
    work = (server.deliver(verdict) for verdict in _verdicts(records, request, report))
    try:
        for outcome in ahead(work, _AT_ONCE):
            failure = outcome.result()
            report.pushed += failure is None
            report.failures += filter(None, (failure,))
    finally:
        wait(server.client.aclose())
    return report


@dataclass(frozen=True)
class _Verdict:
    """What is sent of an item: the ids of its trace and span ("" for none), and what is said."""

    item: str
    trace: str
    span: str
    time: Any  # of the trace
    kind: Literal["HUMAN", "LLM", "CODE"]  # who judged, as these programs tell it
    source: str  # … by name
    result: dict[str, Any]
    metadata: dict[str, Any]


def _verdicts(
    records: Iterable[Record], request: PushRequest, report: PushReport
) -> Iterator[_Verdict]:
    """Yield the verdicts that can be sent, and count the items without."""
    for record in records:
        item, annotation = record.item, record.by(request.annotator)
        trace, span = trace_of(item)
        if annotation is None or annotation.status is not Status.DONE:
            report.unannotated += 1
        elif not trace or (request.to == "phoenix" and not span):
            report.untraced += 1
        else:
            score, source = share_of(item, annotation), f"spanlab:{request.annotator}"
            label = "hallucinated" if annotation.hallucinated else "clean"
            why = _explanation(item, annotation)
            result = {"label": label, "score": score, "explanation": why}
            about = {"annotator": request.annotator, "item": item.id}
            metadata = {"spans": spans_of(annotation), **about}
            time, kind = item.meta.get("time"), _kind(annotation)
            yield _Verdict(item.id, trace, span, time, kind, source, result, metadata)


def _explanation(item: Item, annotation: Annotation) -> str:
    """Return the likeliest span and what is said of it."""
    spans, hard = annotation.spans, hard_of(annotation)
    if annotation.hallucinated and not hard:
        return "The answer is called hallucinated; no place is marked."
    if not hard:
        return "Nothing is marked."
    if not spans:
        return f"“{one_line(item.answer[hard[0].start : hard[0].end], _QUOTED)}”"
    worst = max(spans, key=lambda span: (span.prob, span.end - span.start))
    why = one_line(worst.note or worst.label or "not supported", _QUOTED)
    more = f" ({len(spans) - 1} more)" if len(spans) > 1 else ""
    return f"“{one_line(worst.text, _QUOTED)}”: {why}{more}"


def _kind(annotation: Annotation) -> Literal["HUMAN", "LLM", "CODE"]:
    if annotation.kind in (AnnotatorKind.PERSON, AnnotatorKind.GOLD):
        return "HUMAN"
    try:
        return "LLM" if asks_models(annotation.annotator) else "CODE"
    except UsageError:  # a vote, a function, or a name of somebody's own
        return "CODE"


class _RefusedError(SpanlabError):
    """A request that failed; ``status`` is 0 if no reply came, ``after`` the seconds to wait."""

    def __init__(self, reason: str, status: int = 0, after: float | None = None) -> None:
        super().__init__(reason)
        self.status, self.after = status, after
        # Whether another attempt may help, and another item fares no better.
        self.is_of_server = status in {0, 408, 429} or status >= 500


class _Server:
    """The program that keeps the traces."""

    def __init__(self, request: PushRequest) -> None:
        self._request, self._url = request, _checked_url(request.url)
        self._host = urlsplit(self._url).netloc
        self.client = _client(request)
        self._hopeless = ""  # why nothing more is tried
        self._in_a_row = 0

    async def deliver(self, verdict: _Verdict) -> PushFailure | None:
        """Send a verdict; returns why that failed. After a failure of all nothing is tried."""
        if self._hopeless:
            return PushFailure(verdict.item, 0, f"not tried: {self._hopeless}")
        try:
            await _SENDERS[self._request.to](self.ask, verdict)
        except _RefusedError as error:
            is_of_key, keys = error.status in {401, 403}, " and ".join(ACCESS[self._request.to])
            reason = f"{self._host} {error}" + (f"; check {keys}" if is_of_key else "")
            self._in_a_row = self._in_a_row + 1 if error.is_of_server else 0
            if is_of_key or self._in_a_row >= _IN_A_ROW:
                self._hopeless = self._hopeless or reason
            return PushFailure(verdict.item, error.status, reason)
        self._in_a_row = 0
        return None

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON of a reply, None if it has none.

        Raises:
            _RefusedError: it is an error, or none came, after further attempts where these help.
        """
        for pause in _PAUSES:
            try:
                return await self._ask_once(method, path, body)
            except _RefusedError as error:
                if not error.is_of_server:
                    raise
                await asyncio.sleep(min(error.after or pause, _LONGEST))
        return await self._ask_once(method, path, body)

    async def _ask_once(self, method: str, path: str, body: object) -> Any:
        import httpx

        try:
            async with asyncio.timeout(self._request.timeout):
                reply = await self.client.request(method, self._url + path, json=body)
        except TimeoutError:
            raise _RefusedError(f"did not answer within {self._request.timeout:g} s") from None
        except httpx.HTTPError as error:
            words = quoted(str(error)) or f": {type(error).__name__}"
            raise _RefusedError(f"cannot be reached{words}") from None
        except SpanlabError as error:  # a reply that is too long, or packed
            raise _RefusedError(redact(str(error))) from None
        if not reply.is_success:
            report = ServerReport.read(reply.status_code, reply.headers, reply.content)
            reason = f"answers {report.status}{quoted(report.message)}"
            raise _RefusedError(reason, report.status, report.retry_after)
        with suppress(ValueError):
            return storable_json(reply.text)
        return None


def _checked_url(url: str) -> str:
    try:
        parts = check_url(url)
    except PageError as error:
        raise UsageError(f"the address of the server: {error}") from None
    if parts.query or parts.fragment:
        raise UsageError("the address of the server has no ? and #")
    return url.strip().rstrip("/")


def _client(request: PushRequest) -> httpx.AsyncClient:
    """Return a client that sends the keys of the environment, and follows no redirect."""
    import httpx

    keys = {name: os.environ.get(name, "").strip() for name in ACCESS[request.to]}
    for name, key in keys.items():
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"{name} holds what cannot be sent as a key")
        remember(key)
    headers, pair = {"User-Agent": AGENT}, tuple(keys.values())[-2:]
    if request.to == "langfuse" and not all(pair):
        raise UsageError(f"no key for Langfuse: set {' and '.join(keys)}")
    if token := keys.get("PHOENIX_API_KEY") or keys.get("MLFLOW_TRACKING_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    auth = (pair[0], pair[1]) if len(pair) > 1 and all(pair) and not token else None
    if auth:
        remember(":".join(auth))  # what a server may quote in base64
    return httpx.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=httpx.Timeout(None),  # of a whole request there is one
        verify=certificates(),
        event_hooks={"response": [bounding(httpx, reply_limit())]},
    )


_Ask = Callable[..., Awaitable[Any]]


async def _to_phoenix(ask: _Ask, verdict: _Verdict) -> None:
    about = {"annotator_kind": verdict.kind, "identifier": verdict.source}
    said = {"name": SCORE, "result": verdict.result, "metadata": verdict.metadata}
    body = {"data": [{"span_id": verdict.span, **about, **said}]}
    # At once, so that a span that is not there is told.
    await ask("POST", "/v1/span_annotations?sync=true", body)


async def _to_langfuse(ask: _Ask, verdict: _Verdict) -> None:
    named = "\n".join((verdict.trace, verdict.span, verdict.metadata["annotator"]))
    result = verdict.result
    score = {
        "id": f"spanlab-{hashlib.sha256(named.encode()).hexdigest()[:32]}",
        **{"traceId": verdict.trace, "observationId": verdict.span or None},
        **{"name": SCORE, "value": result["score"], "dataType": "NUMERIC"},
        "comment": result["explanation"],
        "metadata": {"label": result["label"], **verdict.metadata},
        # Only a score of the same time is replaced, so it is that of the trace.
        "timestamp": verdict.time,
    }
    score = {name: value for name, value in score.items() if value is not None}
    try:
        reply = await ask("POST", "/api/public/scores", score)
    except _RefusedError as error:
        if error.status != 400:
            raise
        # Servers since SDK 5 take a list, those before it one score.
        reply = await ask("POST", "/api/public/scores", [score])
    if isinstance(reply, dict) and reply.get("rejected"):
        raise _RefusedError(f"rejects it{quoted(str(reply.get('errors') or ''))}", 207)


async def _to_mlflow(ask: _Ask, verdict: _Verdict) -> None:
    name = quote(verdict.trace.removeprefix("tr-"), safe="")
    place, result = f"/api/3.0/mlflow/traces/tr-{name}", verdict.result
    spans = to_json(verdict.metadata["spans"]).decode()  # texts alone
    kind = "LLM_JUDGE" if verdict.kind == "LLM" else verdict.kind
    told: dict[str, Any] = {
        "assessment_name": SCORE,
        "source": {"source_type": kind, "source_id": verdict.source},
        **{"feedback": {"value": result["score"]}, "rationale": result["explanation"]},
        "metadata": {"label": result["label"], **verdict.metadata, "spans": spans},
    }
    told |= {"span_id": verdict.span} if verdict.span else {}
    if known := _assessment(await ask("GET", place), told):
        body = {"assessment": told, "update_mask": "feedback,rationale,metadata"}
        await ask("PATCH", f"{place}/assessments/{known}", body)
    else:
        await ask("POST", f"{place}/assessments", {"assessment": told})


def _assessment(reply: Any, told: Mapping[str, Any]) -> str:
    """Return the id of a trace's assessment of the same name, source and run, "" for none."""
    names = ("assessment_name", "source", "span_id")
    try:
        listed = reply["trace"]["trace_info"].get("assessments") or ()
        same = [one for one in listed if all(one.get(name) == told.get(name) for name in names)]
        return quote(str(same[-1]["assessment_id"]), safe="") if same else ""
    except (KeyError, TypeError, AttributeError):
        raise _RefusedError("does not answer as MLflow does; check its address", 200) from None


_SENDERS: Final = {"phoenix": _to_phoenix, "langfuse": _to_langfuse, "mlflow": _to_mlflow}

"""The JSON API: detections, verdicts, scores and searches over HTTP, and long work as jobs."""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from collections import deque
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from spanlab.base.errors import (
    AccessError,
    ConfigurationError,
    ModelError,
    NotFoundError,
    NotOfferedError,
    SpanlabError,
    StoreError,
    UsageError,
    missing_package,
)
from spanlab.base.fields import FrozenModel, message_of
from spanlab.base.inbound import one_line
from spanlab.base.redaction import redact
from spanlab.integrations.api_jobs import (
    RETRY,
    ApiJob,
    ApiJobs,
    JobRates,
    JobRequest,
    JobResults,
    StopReply,
)
from spanlab.integrations.gate import (
    ACTOR,
    KEY,
    LARGEST,
    Gate,
    JsonBodies,
    RoleCheck,
    check_key,
    refuse,
)
from spanlab.integrations.offers import (
    ClaimRequest,
    DetectionReply,
    DetectionRequest,
    ScoreReply,
    ScoreRequest,
    SearchRequest,
    ServiceOffers,
)
from spanlab.integrations.traces import (
    LOGS,
    PATH,
    PROTOBUF,
    TraceInbox,
    is_protobuf,
    read_request,
    reply_to,
)
from spanlab.schema import Passage, Permission

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send


VERSION: Final = "v1"
_MINUTE: Final = 60.0
_OPEN: Final = frozenset(("/docs", "/openapi.json"))
_REASON: Final = 300  # characters
_TOLD: Final = 10  # of a request's faults


class ErrorReply(FrozenModel):
    """Why a request was refused, or could not be answered."""

    error: str


_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"description": "The request cannot be met as it was made"},
    401: {"description": "No key, or a wrong one"},
    403: {"description": "The key's role does not allow this"},
    408: {"description": "The request was begun and did not come to its end"},
    413: {"description": f"The request is larger than {LARGEST:,} bytes"},
    422: {"description": "A field is missing, unknown or wrong; the error names it"},
    429: {"description": "Too many requests; Retry-After says in how many seconds to try again"},
    500: {"description": "An error of the server's own"},
    502: {"description": "The model's endpoint gave no answer that can be used"},
    503: {"description": "The server is set up wrongly, as with a wrong key of a model"},
}


def _error(status: int, description: str) -> dict[int | str, dict[str, Any]]:
    """Return an error that some requests alone may have, for the API's description."""
    return {status: {"model": ErrorReply, "description": description}}


_UNOFFERED: Final = _error(404, "A detector or an index that is not offered")


def http_api(
    offers: ServiceOffers,
    jobs: ApiJobs,
    key: str,
    rate: int = 600,
    traces: TraceInbox | None = None,
) -> FastAPI:
    """Return the API as an ASGI application; its OpenAPI page is ``/docs``.

    Args:
        offers: the detectors and the index that it offers.
        jobs: the jobs that were started through it.
        key: the owner's; every request has to bring this one, or one that `spanlab keys` made,
            as ``Authorization: Bearer KEY``.
        rate: requests a minute, of all callers together.
        traces: takes what exporters of OpenTelemetry send; None for no such path.

    Raises:
        UsageError: FastAPI is not installed, or the key is too short.
    """
    try:
        from fastapi import Depends, FastAPI
        from fastapi.security import HTTPBearer
    except ModuleNotFoundError as error:
        raise missing_package("the HTTP API", error.name, "api") from None
    register = jobs.store.access
    check_key(key, has_other_keys=bool(register.tokens("key")))
    app = FastAPI(
        title="spanlab",
        version=VERSION,
        docs_url=None,  # FastAPI's own pages load their scripts from a content network
        redoc_url=None,
        # The gate looks at the key before anything is read; this says so to /docs and to clients.
        dependencies=[
            Depends(HTTPBearer(auto_error=False, description=KEY)),
            Depends(_check_parameters),
        ],
        responses={status: {"model": ErrorReply, **told} for status, told in _ERRORS.items()},
    )
    app.add_middleware(JsonBodies, other_paths=(PATH, LOGS))
    app.add_middleware(_Rate, rate=rate)
    app.add_middleware(RoleCheck, needed=_permission_for)
    app.add_middleware(Gate, key=key, open_paths=_OPEN, bearer=register.bearer)
    _add_errors(app)

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi()), headers={"Content-Security-Policy": POLICY})

    @app.get(f"/{VERSION}/detectors")
    async def detectors() -> list[str]:
        """Return the detectors that are offered, the one that is taken by default first."""
        return list(offers.detectors)

    @app.post(f"/{VERSION}/detections", response_model_exclude_none=True, responses=_UNOFFERED)
    async def detections(request: DetectionRequest) -> DetectionReply:
        """Find the hallucinated spans of an answer."""
        return await offers.find(request)

    @app.post(f"/{VERSION}/claims", response_model_exclude_none=True, responses=_UNOFFERED)
    async def claims(request: ClaimRequest) -> DetectionReply:
        """Verify a claim."""
        return await offers.verify(request)

    @app.post(f"/{VERSION}/scores")
    def scores(request: ScoreRequest) -> ScoreReply:  # in a thread: large ones compute for a while
        """Score predicted spans against gold ones."""
        return offers.score(request)

    @app.post(f"/{VERSION}/passages", response_model_exclude_none=True, responses=_UNOFFERED)
    async def passages(request: SearchRequest) -> list[Passage]:
        """Search the index for the passages that come closest to a query."""
        return list(await offers.search(request.query, request.k))

    _add_jobs(app, jobs)
    if traces is not None:
        _add_traces(app, traces)
    return app


def _check_parameters(request: Request) -> None:
    """Refuse parameters behind the path's ``?`` that a request does not have."""
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    if unknown := [name for name in request.query_params if name not in known]:
        words = f"{unknown[0]}: there is no such parameter; available: {', '.join(known) or 'none'}"
        raise HTTPException(422, one_line(words, _REASON))


def _add_traces(app: FastAPI, inbox: TraceInbox) -> None:
    """Add what exporters of OpenTelemetry send to: OTLP, as protobuf or JSON, maybe packed."""

    async def take(request: Request) -> Response:
        if request.query_params:
            named = ", ".join(request.query_params)
            raise HTTPException(400, one_line(f"{named}: a trace has no parameters", _REASON))
        kind, packed = (request.headers.get(f"content-{name}", "") for name in ("type", "encoding"))
        path = request.url.path
        traces = await read_request(request.stream(), path, kind, packed)
        try:
            rejected, reason = await run_in_threadpool(inbox.add, traces, path)
        except (AccessError, NotFoundError):
            raise
        except StoreError as error:  # after 503 alone all exporters send again
            reason = _without_paths(redact(str(error)))
            raise HTTPException(503, reason, RETRY) from None
        return Response(
            reply_to(rejected, reason, path, kind),
            media_type=PROTOBUF if is_protobuf(kind) else "application/json",
        )

    for path in (PATH, LOGS):
        app.add_route(path, take, methods=["POST"])


def _add_errors(app: FastAPI) -> None:
    """Give all errors one shape: ``{"error": "why"}``."""
    from fastapi.exceptions import RequestValidationError

    @app.exception_handler(SpanlabError)
    async def _ours(_request: Any, error: SpanlabError) -> JSONResponse:
        kinds = (
            (NotOfferedError, 404),
            (UsageError, 400),
            (NotFoundError, 404),
            (AccessError, 403),
            (ConfigurationError, 503),
            (ModelError, 502),
        )
        status = next((code for kind, code in kinds if isinstance(error, kind)), 500)
        return JSONResponse({"error": _without_paths(redact(str(error)))}, status)

    @app.exception_handler(RequestValidationError)
    async def _wrong(_request: Any, error: RequestValidationError) -> JSONResponse:
        faults = [
            f"{'.'.join(map(str, each['loc'][1:])) or 'the body'}: {message_of(each)}"
            for each in error.errors()
        ]
        told = [one_line(redact(fault), _REASON) for fault in faults[:_TOLD]]
        further = [f"and {len(faults) - _TOLD} more"] if faults[_TOLD:] else []
        return JSONResponse({"error": "; ".join([*told, *further])}, 422)

    @app.exception_handler(HTTPException)
    async def _refused(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        if error.status_code == 405:  # Starlette names the methods of the first route alone
            routes = (route for route in app.routes if isinstance(route, Route))
            here = [route for route in routes if route.path_regex.match(request.scope["path"])]
            methods = {method for route in here for method in route.methods or ()}
            headers["Allow"] = ", ".join(sorted(methods))
        return JSONResponse({"error": str(error.detail)}, error.status_code, headers)

    @app.exception_handler(Exception)
    async def _broken(_request: Any, _error: Exception) -> JSONResponse:
        return JSONResponse({"error": "an error of the server's own; its log says more"}, 500)


_PATH = re.compile(r"(?<![\w.:/])/(?!v\d)(?:[^\s/'\"“”:,;]+/)+[^\s'\"“”:,;]*")  # not of a URL


def _without_paths(words: str) -> str:
    """Return an error's words with the names of the server's files alone, not their places."""
    return _PATH.sub(lambda path: path[0].rstrip("/").rpartition("/")[2], words)


def _add_jobs(app: FastAPI, jobs: ApiJobs) -> None:
    """Add the requests about jobs, which run in threads because they wait for the database.

    Each handler gets the jobs of its caller's key, and no others.
    """
    from fastapi import Depends

    def jobs_of(request: Request) -> ApiJobs:
        return jobs.acting_as(request.scope[ACTOR])

    callers = Depends(jobs_of)
    missing = _error(404, "There is no such job")
    location = {"Location": {"description": "Where the job is", "schema": {"type": "string"}}}

    @app.post(
        f"/{VERSION}/jobs", status_code=202, responses=_UNOFFERED | {202: {"headers": location}}
    )
    def start(job_request: JobRequest, response: Response, mine: ApiJobs = callers) -> ApiJob:
        """Start the detection of many answers, which goes on whatever becomes of this server."""
        job = mine.start(job_request)
        response.headers["Location"] = f"/{VERSION}/jobs/{job.id}"
        return job

    @app.get(f"/{VERSION}/jobs")
    def newest_jobs(mine: ApiJobs = callers) -> tuple[ApiJob, ...]:
        """Return the jobs that are not forgotten, the newest first, a hundred at most."""
        return mine.newest()

    @app.get(f"/{VERSION}/jobs/{{job_id}}", responses=missing)
    def job(job_id: str, mine: ApiJobs = callers) -> ApiJob:
        """Return how far a job is."""
        return mine.get(job_id)

    @app.get(
        f"/{VERSION}/jobs/{{job_id}}/results", response_model_exclude_none=True, responses=missing
    )
    def results(
        job_id: str, start: Annotated[int, Field(ge=0)] = 0, mine: ApiJobs = callers
    ) -> JobResults:
        """Return what a job has found so far, a page at a time, from an answer on."""
        return mine.results(job_id, start)

    early = _error(409, "Nothing was found yet")

    @app.get(f"/{VERSION}/jobs/{{job_id}}/rates", responses=missing | early)
    def rates(job_id: str, mine: ApiJobs = callers) -> JobRates:
        """Return how much a job's detector marked, and the rate where people have measured it."""
        return mine.rates(job_id)

    gone: dict[int | str, dict[str, Any]] = {
        202: {"model": ApiJob, "description": "The job was stopped; asked again, it is forgotten"},
        204: {"description": "The job was forgotten with all it found"},
    }

    @app.delete(f"/{VERSION}/jobs/{{job_id}}", response_model=StopReply, responses=missing | gone)
    def stop(job_id: str, mine: ApiJobs = callers) -> Any:
        """Stop a job; one that is over is forgotten with all it found.

        What people have worked on since is not deleted; the reply says so then.
        """
        reply = mine.stop(job_id)
        if isinstance(reply, ApiJob):
            return JSONResponse(reply.model_dump(mode="json"), 202)
        return reply if reply is not None else Response(status_code=204)


def _permission_for(method: str, path: str) -> Permission | None:
    """Return what a request needs: to look is for viewers, what costs or changes for leads."""
    if path in _OPEN:
        return None
    looks = method == "GET" or path in {f"/{VERSION}/scores", f"/{VERSION}/passages"}
    return Permission.READ if looks else Permission.ADMINISTER


class _Rate:
    """Refuses requests that are too many before they are read."""

    def __init__(self, app: ASGIApp, rate: int) -> None:
        self._app, self._rate = app, rate
        self._times: deque[float] = deque(maxlen=rate)  # of the last requests that passed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in _OPEN:
            now = time.monotonic()
            if len(self._times) == self._rate and self._times[0] >= now - _MINUTE:
                words = f"more than {self._rate} requests a minute"
                await refuse(send, 429, words, (b"retry-after", RETRY["Retry-After"].encode()))
                return
            self._times.append(now)
        await self._app(scope, receive, send)


_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 56rem; padding: 0 1rem;
  color-scheme: light dark; }
h2 { border-top: 1px solid; font: 600 1.1rem/1.5 ui-monospace, monospace; padding-top: 1rem; }
pre { overflow-x: auto; padding: .75rem; background: color-mix(in srgb, currentColor 8%, Canvas); }
"""
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'"


def api_page(description: Mapping[str, Any]) -> str:
    """Return the page for an OpenAPI description; ``POLICY`` is its Content-Security-Policy."""
    title = escape(f"{description['info']['title']} {description['info']['version']}")
    parts = [
        part for path, methods in description["paths"].items() for part in _path(path, methods)
    ]
    shapes = description["components"]["schemas"]
    parts += [
        f"<h2 id='{escape(name)}'>{escape(name)}</h2>{_pre(shape)}"
        for name, shape in shapes.items()
    ]
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head><body>"
        f"<main><h1>{title}</h1><p>Every request carries <code>Authorization: Bearer KEY</code>. "
        "For programs: <a href='/openapi.json'>openapi.json</a>.</p>"
        f"{''.join(parts)}</main></body></html>"
    )


def _path(path: str, methods: Mapping[str, Any]) -> Iterator[str]:
    for method, operation in methods.items():
        yield f"<h2>{escape(method.upper())} {escape(path)}</h2>"
        yield f"<p>{escape(operation.get('description', ''))}</p>"
        for parameter in operation.get("parameters", ()):
            name = f"{parameter['name']} ({parameter['in']})"
            yield f"<p>Parameter <code>{escape(name)}</code></p>{_pre(parameter['schema'])}"
        if "requestBody" in operation:
            yield f"<p>Body: {_shape(operation['requestBody'])}</p>"
        replies = (
            f"<li>{status}: {escape(reply['description'])} {_shape(reply)}</li>"
            for status, reply in operation["responses"].items()
        )
        yield f"<ul>{''.join(replies)}</ul>"


def _shape(body: Mapping[str, Any]) -> str:
    """Return the name of what a body holds, linked to its description, or its schema."""
    schema = body.get("content", {}).get("application/json", {}).get("schema", {})
    name = escape(schema.get("$ref", "").rpartition("/")[2])
    return f"<a href='#{name}'>{name}</a>" if name else _pre(schema) if schema else ""


def _pre(value: object) -> str:
    return f"<pre>{escape(json.dumps(value, indent=1, ensure_ascii=False))}</pre>"

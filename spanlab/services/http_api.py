"""The same offers as a JSON API: a key, limits on size and rate, and long work as jobs."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, Literal

from spanlab.errors import ConfigurationError, ModelError, SpanlabError, UsageError, missing_package
from spanlab.fields import Frozen
from spanlab.lm.secrets import redact
from spanlab.services.offers import (
    ClaimRequest,
    DetectionReply,
    DetectionRequest,
    Offers,
    ScoreReply,
    ScoreRequest,
)

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

VERSION: Final = "v1"
LARGEST: Final = 4 * 2**20  # bytes of a request
_JOBS: Final = 1_000  # that are remembered; the oldest that ended are forgotten
_WAITING: Final = 100  # jobs that may be under way
_MINUTE: Final = 60.0
_OPEN: Final = frozenset(("/docs", "/openapi.json"))


class ApiJob(Frozen):
    """A detection that is done in the background; ``result`` is there once it is done."""

    id: str
    state: Literal["running", "done", "failed"]
    progress: float
    result: DetectionReply | None = None
    error: str | None = None


class _Jobs:
    """Work in the background of this process, by id."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, asyncio.Task[DetectionReply]] = OrderedDict()

    def start(self, work: Coroutine[Any, Any, DetectionReply]) -> ApiJob:
        if sum(not task.done() for task in self._tasks.values()) >= _WAITING:
            work.close()
            raise UsageError(f"{_WAITING} jobs are under way: wait until one has ended")
        while len(self._tasks) >= _JOBS:
            ended = next(name for name, task in self._tasks.items() if task.done())
            del self._tasks[ended]
        name = secrets.token_hex(8)
        self._tasks[name] = asyncio.create_task(work)
        return ApiJob(id=name, state="running", progress=0.0)

    def get(self, name: str) -> ApiJob | None:
        task = self._tasks.get(name)
        if task is None:
            return None
        if not task.done():
            return ApiJob(id=name, state="running", progress=0.0)
        error = None if task.cancelled() else task.exception()
        if error is not None or task.cancelled():
            words = redact(str(error)) if isinstance(error, SpanlabError) else "it was stopped"
            return ApiJob(id=name, state="failed", progress=1.0, error=words)
        return ApiJob(id=name, state="done", progress=1.0, result=task.result())

    def stop(self, name: str) -> None:
        if name in self._tasks:
            self._tasks[name].cancel()


def http_api(offers: Offers, key: str, rate: int = 600) -> FastAPI:
    """Return the API as an ASGI application; its OpenAPI page is ``/docs``.

    Args:
        offers: what it offers.
        key: that every request has to bring as ``Authorization: Bearer KEY``.
        rate: requests a minute, of all callers together.

    Raises:
        UsageError: FastAPI is not installed, or the key is too short.
    """
    try:
        from fastapi import FastAPI, HTTPException
        from fastapi.responses import JSONResponse
    except ModuleNotFoundError as error:
        raise missing_package("the HTTP API", error.name, "api") from None
    if len(key) < 16:
        raise UsageError("set SPANLAB_API_KEY to a key of at least 16 characters")
    app = FastAPI(title="spanlab", version=VERSION, redoc_url=None)
    app.add_middleware(_Gate, key=key, rate=rate)
    jobs = _Jobs()

    @app.exception_handler(SpanlabError)
    async def _told(_request: Any, error: SpanlabError) -> JSONResponse:
        kinds = ((UsageError, 400), (ConfigurationError, 503), (ModelError, 502))
        status = next((code for kind, code in kinds if isinstance(error, kind)), 500)
        return JSONResponse({"error": redact(str(error))}, status)

    @app.get(f"/{VERSION}/detectors")
    async def detectors() -> list[str]:
        """Return the detectors that are offered, the one that is taken by default first."""
        return list(offers.detectors)

    @app.post(f"/{VERSION}/detections", response_model_exclude_defaults=True)
    async def detections(asked: DetectionRequest) -> DetectionReply:
        """Find the hallucinated spans of an answer."""
        return await offers.find(asked)

    @app.post(f"/{VERSION}/claims", response_model_exclude_defaults=True)
    async def claims(asked: ClaimRequest) -> DetectionReply:
        """Verify a claim."""
        return await offers.verify(asked)

    @app.post(f"/{VERSION}/scores")
    async def scores(asked: ScoreRequest) -> ScoreReply:
        """Score predicted spans against gold ones."""
        return offers.score(asked)

    @app.post(f"/{VERSION}/jobs", status_code=202)
    async def start(asked: DetectionRequest) -> ApiJob:
        """Start a detection that may take long."""
        return jobs.start(offers.find(asked))

    @app.get(f"/{VERSION}/jobs/{{name}}")
    async def job(name: str) -> ApiJob:
        """Return how far a job is, and its result."""
        found = jobs.get(name)
        if found is None:
            raise HTTPException(404, "no such job")
        return found

    @app.delete(f"/{VERSION}/jobs/{{name}}", status_code=204)
    async def stop(name: str) -> None:
        """Stop a job."""
        jobs.stop(name)

    return app


class _Gate:
    """Refuses requests without the key, too large ones and too many, before they are read."""

    def __init__(self, app: ASGIApp, key: str, rate: int) -> None:
        self._app, self._key, self._rate = app, f"Bearer {key}".encode(), rate
        self._times: deque[float] = deque()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refusal = self._refusal(headers)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > LARGEST:
                raise UsageError(f"the request is larger than {LARGEST:,} bytes")
            return message

        await self._app(scope, bounded, send)

    def _refusal(self, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        if not secrets.compare_digest(headers.get(b"authorization", b""), self._key):
            return 401, "the header Authorization has no key that is known: Bearer KEY"
        written = headers.get(b"content-length", b"0")
        if not written.isdigit() or int(written) > LARGEST:
            return 413, f"the request is larger than {LARGEST:,} bytes"
        now = time.monotonic()
        while self._times and self._times[0] < now - _MINUTE:
            self._times.popleft()
        if len(self._times) >= self._rate:
            return 429, f"more than {self._rate} requests a minute"
        self._times.append(now)
        return None


async def _refuse(send: Send, status: int, words: str) -> None:
    import json

    body = json.dumps({"error": words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

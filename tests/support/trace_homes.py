"""Where traces live: Phoenix, Langfuse and MLflow, as far as traces and verdicts go."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

from answering import Silent, answering

KEYS = {
    "PHOENIX_API_KEY": "phoenix-key-of-the-test",
    "LANGFUSE_PUBLIC_KEY": "pk-lf-of-the-test",
    "LANGFUSE_SECRET_KEY": "sk-lf-of-the-test",
    "MLFLOW_TRACKING_TOKEN": "mlflow-token-of-the-test",
}
_PAIR = f"{KEYS['LANGFUSE_PUBLIC_KEY']}:{KEYS['LANGFUSE_SECRET_KEY']}"
_ALLOWED = {
    "/v1": f"Bearer {KEYS['PHOENIX_API_KEY']}",
    "/api/public": f"Basic {base64.b64encode(_PAIR.encode()).decode()}",
    "/api/3.0": f"Bearer {KEYS['MLFLOW_TRACKING_TOKEN']}",
}
_TRACE = re.compile(r"/api/3\.0/mlflow/traces/([^/]+)(/assessments(?:/([^/]+))?)?")
Reply = tuple[int, Any]


@dataclass
class TraceHomes:
    """What was stored, by what makes it the same thing there; ``calls`` are all requests.

    ``statuses`` answer the first requests, ``delay`` seconds late. Of Langfuse's there are servers
    that take one score, and some that take a list.
    """

    known: set[str] = field(default_factory=set)
    annotations: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    scores: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    assessments: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    traces: list[dict[str, Any]] = field(default_factory=list)  # of Langfuse
    spans: list[dict[str, Any]] = field(default_factory=list)  # of Phoenix
    takes_list: bool = False
    page: int = 1000  # the most spans or traces of one reply
    statuses: list[int] = field(default_factory=list)
    delay: float = 0.0
    calls: list[str] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, authorization: str, body: Any) -> Reply:
        """Answer a request as the programs do."""
        self.calls.append(f"{method} {path}")
        if self.statuses and (status := self.statuses.pop(0)) != 200:
            return status, {"message": f"status {status}, sent with {authorization}"}
        if not any(
            path.startswith(begin) and authorization == key for begin, key in _ALLOWED.items()
        ):
            return 401, {"detail": f"Invalid token {authorization}"}
        if (method, path) == ("POST", "/v1/span_annotations?sync=true"):
            return self._phoenix(body)
        if (method, path) == ("POST", "/api/public/scores"):
            return self._langfuse(body)
        if method == "GET" and path.startswith(("/api/public/traces", "/v1/projects/")):
            return self._listed(*path.partition("?")[::2])
        found = _TRACE.fullmatch(path)
        return self._mlflow(method, found[1], found[3], body) if found else (404, {})

    def _listed(self, path: str, query: str) -> Reply:
        """A page of spans, of traces without their observations, or one whole trace."""
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        if path == "/v1/projects/default/spans":
            start = int(asked.get("cursor", "0"))
            end = start + self.page
            cursor = str(end) if end < len(self.spans) else None
            return 200, {"data": self.spans[start:end], "next_cursor": cursor}
        if path == "/api/public/traces":
            size = min(int(asked["limit"]), self.page)
            first = (int(asked["page"]) - 1) * size
            bare = [{**trace, "observations": []} for trace in self.traces[first : first + size]]
            return 200, {"data": bare, "meta": {"totalPages": -(-len(self.traces) // size)}}
        name = path.rpartition("/")[2]
        whole = [trace for trace in self.traces if trace["id"] == name]
        return (200, whole[0]) if whole else (404, {"detail": "Project not found"})

    def _phoenix(self, body: Any) -> Reply:
        for each in body["data"]:
            if each["span_id"] not in self.known:
                return 404, {"detail": f"Spans with IDs {each['span_id']} do not exist."}
            self.annotations[each["span_id"], each["name"], each["identifier"]] = each
        return 200, {"data": [{"id": "1"}]}

    def _langfuse(self, body: Any) -> Reply:
        if isinstance(body, list) is not self.takes_list:
            return 400, {"message": "Invalid request data"}
        for each in body if isinstance(body, list) else [body]:
            assert each["dataType"] == "NUMERIC" and isinstance(each["value"], float)
            if each["traceId"] not in self.known:
                return 207, {"accepted": 0, "rejected": 1, "errors": [{"message": "no such trace"}]}
            self.scores[each["id"], each["timestamp"]] = each
        return (202, {"message": "Accepted"}) if self.takes_list else (200, {"id": body["id"]})

    def _mlflow(self, method: str, trace: str, name: str | None, body: Any) -> Reply:
        if trace not in self.known:
            message = f"Trace with ID '{trace}' not found."
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": message}
        stored = self.assessments.setdefault(trace, [])
        if method == "POST":
            told = body["assessment"]
            assert all(isinstance(value, str) for value in told["metadata"].values())
            stored.append({**told, "assessment_id": f"a-{len(stored)}"})
        elif method == "PATCH":
            (known,) = (each for each in stored if each["assessment_id"] == name)
            told = body["assessment"]
            known |= {part: told[part] for part in body["update_mask"].split(",")}
        info = {"trace_id": trace, **({"assessments": stored} if stored else {})}
        return 200, {"trace": {"trace_info": info}}


@contextmanager
def living() -> Iterator[TraceHomes]:
    """Listen until the block ends."""
    homes = TraceHomes()
    ended = threading.Event()

    class Answer(Silent, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            ended.wait(homes.delay)
            with homes.lock:
                status, reply = homes.answer(
                    self.command,
                    self.path,
                    self.headers.get("Authorization", ""),
                    json.loads(sent) if sent else None,
                )
            data = json.dumps(reply).encode()
            self.send_response(status)
            if status in {301, 302, 307}:
                self.send_header("Location", f"{homes.url}/elsewhere")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - as the library calls them

    with answering(Answer) as homes.url:
        try:
            yield homes
        finally:
            ended.set()

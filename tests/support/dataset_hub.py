"""A hub of datasets on this machine, as far as reading and pushing ask it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import yaml
from answering import Silent, answering

TOKEN = "hf_a-token-that-only-the-hub-knows"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class DatasetHub:
    """Repositories by name, with their files; ``private`` are those that need the token."""

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    fetched: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def info(self, name: str) -> dict[str, object]:
        """Return what the hub says of a repository."""
        siblings = [{"rfilename": each} for each in self.files[name]]
        private = name in self.private
        return {"_id": "1", "id": name, "sha": COMMIT, "private": private, "siblings": siblings}

    def commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        """Take the files of a commit."""
        for line in lines:
            if line["key"] == "file":
                content = base64.b64decode(line["value"]["content"])
                self.files[name][line["value"]["path"]] = content


@contextmanager
def serving(hub: DatasetHub) -> Iterator[DatasetHub]:
    """Serve the repositories until the block ends."""

    class Answer(Silent, BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            repository = "/".join(path.removeprefix("/api").split("/")[2:4])
            if repository not in hub.files or (repository in hub.private and not self.known()):
                self.answer(404 if self.known() else 401, {}, {"X-Error-Code": "RepoNotFound"})
            elif path.startswith("/api/"):
                self.answer(200, hub.info(repository))
            else:
                file = path.partition(f"/resolve/{COMMIT}/")[2]
                content = hub.files[repository][file]
                hub.fetched += [file] * (self.command == "GET")
                etag = f'"{hashlib.sha256(content).hexdigest()}"'
                self.answer(200, content, {"X-Repo-Commit": COMMIT, "ETag": etag})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            if not self.known():
                self.answer(401, {"error": "Invalid username or password."})
                return
            if self.path == "/api/validate-yaml":  # of a card
                front = json.loads(body)["content"].split("---")[1]
                assert yaml.safe_load(front)["configs"]
                self.answer(200, {"errors": [], "warnings": []})
                return
            if self.path == "/api/repos/create":
                asked = json.loads(body)
                name = f"{asked['organization']}/{asked['name']}"
                assert asked["type"] == "dataset"
                status = 409 if name in hub.files else 200
                hub.files.setdefault(name, {})
                if status == 200 and asked.get("visibility") == "private":
                    hub.private.add(name)
                self.answer(status, {"url": f"{hub.url}/datasets/{name}", "id": "1"})
                return
            hub.asked.append(f"POST {self.path}")
            owner, name, what = (*self.path.split("/")[3:6], "", "", "")[:3]
            if what == "preupload":
                files = [
                    {"path": each["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for each in json.loads(body)["files"]
                ]
                self.answer(200, {"files": files})
            elif what == "commit":
                hub.commit(f"{owner}/{name}", [json.loads(line) for line in body.splitlines()])
                where = f"{hub.url}/datasets/{owner}/{name}/commit/{COMMIT}"
                self.answer(200, {"success": True, "commitOid": COMMIT, "commitUrl": where})
            else:
                self.answer(404, {})

        def known(self) -> bool:
            return self.headers.get("Authorization") == f"Bearer {TOKEN}"

        def answer(self, status: int, said: Any, headers: dict[str, str] | None = None) -> None:
            content = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    with answering(Answer) as hub.url:
        yield hub

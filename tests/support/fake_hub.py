"""A hub of checkpoints on this machine, as far as `spanlab encoder fetch` asks it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from answering import Silent, answering

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """One repository; ``asked`` are the paths that were requested."""

    name: str
    folder: Path
    wrong_hash: bool = False
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def info(self) -> dict[str, object]:
        """Return what the hub says of the repository."""
        files = [each for each in sorted(self.folder.rglob("*")) if each.is_file()]
        return {
            "_id": "1",
            "id": self.name,
            "modelId": self.name,
            "sha": COMMIT,
            "private": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "siblings": [self._sibling(file) for file in files],
        }

    def _sibling(self, file: Path) -> dict[str, object]:
        content = file.read_bytes()
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        said: dict[str, object] = {
            "rfilename": file.relative_to(self.folder).as_posix(),
            "size": len(content),
            "blobId": blob,
        }
        if file.suffix in {".onnx", ".safetensors"}:
            digest = "0" * 64 if self.wrong_hash else hashlib.sha256(content).hexdigest()
            said["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
        return said


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve a repository until the block ends."""

    class Answer(Silent, BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            file = hub.folder / path.removeprefix(f"/{hub.name}/resolve/{COMMIT}/")
            known = path.startswith(f"/api/models/{hub.name}/revision/")
            if known:
                content = json.dumps(hub.info()).encode()
            elif file.is_file():
                content = file.read_bytes()
            else:
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.end_headers()
            if body:
                self.wfile.write(content)

    with answering(Answer) as hub.url:
        yield hub

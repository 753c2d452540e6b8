"""Label Studio itself: what goes there comes back with its offsets, gold, people and responses."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import spanlab
from spanlab.schema import AnnotatorKind, Record

ROOT = Path(__file__).parents[2]
# An environment of its own, as it wants other versions of what spanlab needs.
PROGRAM = ROOT / ".venv" / "label-studio" / "bin" / "label-studio"
PROJECT = ROOT / "tests" / "full" / "cli" / "label_studio"
TOKEN = "01234567" * 5
MAIL = "mia@example.org"

Command = Callable[..., Any]
Running = Callable[..., AbstractContextManager[str]]


class LabelStudio:
    """A project in Label Studio, by its API."""

    def __init__(self, url: str, config: str, tasks: bytes) -> None:
        self._url = f"{url}/api"
        project = {"title": "A project of ours", "label_config": config}
        self._project = f"projects/{self.post('projects', json.dumps(project).encode())['id']}"
        self.post(f"{self._project}/import", tasks)

    def post(self, path: str, body: bytes) -> Any:
        return json.loads(self._ask(path, body))

    def first_task(self) -> Any:
        number = self._project.partition("/")[2]
        return json.loads(self._ask(f"tasks?project={number}&page_size=1"))["tasks"][0]

    def export(self, kind: str) -> bytes:
        return self._ask(f"{self._project}/export?exportType={kind}&download_all_tasks=true")

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        headers = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}/{path}", body, headers)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return bytes(reply.read())


@pytest.fixture
def studio(served: Running, tmp_path: Path) -> Iterator[str]:
    """Label Studio with an empty database, which it takes a minute to make; yields its address."""
    if not PROGRAM.exists():
        pytest.skip("Label Studio is not installed")
    own = {
        "HOME": str(tmp_path),
        "LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path / "studio"),
        # It tells its makers of starts, versions and faults unless told otherwise.
        "COLLECT_ANALYTICS": "false",
        "FRONTEND_SENTRY_DSN": "",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
    }
    words = [str(PROGRAM), "start", "--no-browser", "--internal-host", "127.0.0.1", "-p", "{port}"]
    words += ["--username", MAIL, "--password", "a-password-of-ours", "--user-token", TOKEN]
    with served([*words, "--enable-legacy-api-token"], "/health", **own) as url:
        yield url


def test_what_goes_there_comes_back(studio: str, command: Command, tmp_path: Path) -> None:
    """Two projects on one server, as its start takes longer than they do."""
    _samples(studio, command, tmp_path)
    _responses(studio, command, tmp_path)


def _samples(studio: str, command: Command, tmp_path: Path) -> None:
    """Gold, people with notes, failed and empty annotations; then a mark that somebody adds."""
    command("import", ROOT / "data" / "samples.jsonl", "--dataset", "samples")
    command("annotate", "samples", "--detector", "offline", "--limit", "5")
    command("export", "samples", "--format", "labelstudio", "-o", "tasks.json")
    config = command("datasets", "samples", "--config").stdout
    project = LabelStudio(studio, config, (tmp_path / "tasks.json").read_bytes())
    back, told = _read_back(project, "JSON", command, tmp_path)
    assert "5 annotations or predictions that are only numbers here" in told
    assert _by_people(back) == _by_people(_exported("samples", command, tmp_path))
    assert any(a.kind is AnnotatorKind.GOLD for record in back for a in record.annotations)

    task = project.first_task()
    text = task["data"]["answer"][:5]
    region: dict[str, Any] = {"from_name": "label", "to_name": "answer", "type": "labels"}
    region["value"] = {"start": 0, "end": 5, "text": text, "labels": ["other"]}
    project.post(f"tasks/{task['id']}/annotations", json.dumps({"result": [region]}).encode())
    for kind in ("JSON", "JSON_MIN", "CSV"):
        back, told = _read_back(project, kind, command, tmp_path)
        sent = _exported("samples", command, tmp_path)
        assert [(r.item.answer, r.item.passages) for r in back] == [
            (r.item.answer, r.item.passages) for r in sent
        ]
        if kind != "JSON_MIN":  # in which the tasks' own ids take the place of ours
            assert [r.item.id for r in back] == [r.item.id for r in sent]
        marks = [[(s.start, s.end, s.text) for s in a.spans] for a in back[0].annotations]
        assert [(0, 5, text)] in marks
        assert ("come back with its JSON" in told) == (kind != "JSON")


def _responses(studio: str, command: Command, tmp_path: Path) -> None:
    """A project that asks of spans and of answers."""
    asked = ("--questions", PROJECT / "config.xml")
    command("import", PROJECT / "export.json", "--dataset", "trips", *asked)
    command("export", "trips", "--format", "labelstudio", "-o", "tasks.json")
    config = command("datasets", "trips", "--config").stdout
    project = LabelStudio(studio, config, (tmp_path / "tasks.json").read_bytes())
    back, _ = _read_back(project, "JSON", command, tmp_path)
    assert _by_people(back) == _by_people(_exported("trips", command, tmp_path))
    assert any(a.responses for record in back for a in record.annotations)


def _read_back(
    project: LabelStudio, kind: str, command: Command, tmp_path: Path
) -> tuple[list[Record], str]:
    """Return an export's records, and what the command said of it."""
    name = f"back-{len(list(tmp_path.glob('back-*')))}"
    path = tmp_path / f"{name}.{'csv' if kind == 'CSV' else 'json'}"
    path.write_bytes(project.export(kind))
    told = command("import", path, "--dataset", name).stderr
    return _exported(name, command, tmp_path), told


def _exported(dataset: str, command: Command, tmp_path: Path) -> list[Record]:
    command("export", dataset, "-o", f"{dataset}.jsonl")
    return spanlab.load(tmp_path / f"{dataset}.jsonl")


def _by_people(records: list[Record]) -> list[Any]:
    """Return what people said of items, without evidence, which Label Studio has no place for."""
    people = {AnnotatorKind.PERSON, AnnotatorKind.GOLD}
    fields = {"annotator", "kind", "status", "note", "responses"}
    marked = {"start", "end", "text", "label", "note", "attributes"}
    return [
        (
            record.item.id,
            record.item.question,
            record.item.answer,
            [
                (a.model_dump(include=fields), [s.model_dump(include=marked) for s in a.spans])
                for a in record.annotations
                if a.kind in people
            ],
        )
        for record in records
    ]

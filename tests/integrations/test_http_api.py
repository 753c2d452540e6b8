"""The JSON API, asked as other programs ask it."""

from __future__ import annotations

import gzip
import json
import logging
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import pytest
import uvicorn
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from starlette.testclient import TestClient
from starlette.types import ASGIApp
from working_jobs import SECONDS, working_here

from spanlab.base.errors import StoreError, UsageError
from spanlab.base.redaction import remember
from spanlab.base.settings import Settings
from spanlab.cli.servers import HealthPaths, JsonLines, RequestLog
from spanlab.detection import DetectorSpec
from spanlab.detection.request import RunRequest
from spanlab.detection.selection import DetectorSelection
from spanlab.integrations import waiting
from spanlab.integrations.api_jobs import ApiJobs
from spanlab.integrations.gate import LARGEST, Gate, HeadLimit
from spanlab.integrations.http_api import _without_paths, http_api
from spanlab.integrations.offers import (
    DetectionRequest,
    ScoreReply,
    ScoreRequest,
    ServiceOffers,
)
from spanlab.integrations.traces import TraceInbox
from spanlab.jobs import Jobs
from spanlab.measure.sample import measurement_queue, plan_measurement
from spanlab.oplog.operations import SentOperation, SetStatus
from spanlab.schema import (
    Annotation,
    DatasetSettings,
    Item,
    MeasurementPlan,
    Passage,
    Process,
    Record,
    Status,
)
from spanlab.search.index import build
from spanlab.storage import Store
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say_fields

pytestmark = pytest.mark.system("offline")

KEY = "a-key-that-is-long-enough"
OFFLINE = DetectorSpec(detector="offline")
ANSWER = "The tower was built in 1989 by Ada Smith in Paris."
PASSAGE = "The tower was built in 1889 by Gustave Eiffel in Paris."
ASKED = {"answer": ANSWER, "question": "Who built it?", "passages": [{"text": PASSAGE}]}


@contextmanager
def serving(store: Store, *detectors: str, rate: int = 600) -> Iterator[TestClient]:
    """Serve as `spanlab api` does; doing it again on the same store is a restart."""
    offers = ServiceOffers(DetectorSelection(detectors=detectors or ("offline",)))
    app = http_api(offers, ApiJobs(store, offers), KEY, rate)
    with TestClient(app, headers={"Authorization": f"Bearer {KEY}"}) as opened:
        yield opened


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    with serving(store, rate=20) as opened:
        yield opened


def test_spans_come_back_with_evidence_and_are_scored(client: TestClient) -> None:
    assert client.get("/v1/detectors").json() == ["offline"]
    found = client.post("/v1/detections", json=ASKED)
    assert found.status_code == 200
    said = found.json()
    (year,) = (span for span in said["spans"] if "1989" in span["text"])
    assert ANSWER[year["start"] : year["end"]] == year["text"]
    assert said["passages"][year["evidence"][0]["passage"]] == {"text": PASSAGE}
    gold = {"answer": ANSWER, "spans": said["spans"], "gold": said["spans"]}
    assert client.post("/v1/scores", json=gold).json()["iou"] == 1.0
    assert [ANSWER[part["start"] : part["end"]] for part in said["hard"]] == ["1989", "Ada Smith"]
    unlikely = [{**span, "prob": 0.4} for span in said["spans"]]
    scored = gold | {"spans": unlikely, "hard": said["hard"]}
    assert client.post("/v1/scores", json=scored).json()["iou"] == 1.0
    past = client.post("/v1/scores", json=scored | {"hard": [{"start": 0, "end": 999}]})
    assert past.status_code == 422
    shifted = {"start": 0, "end": 3, "text": "Thx"}
    refused = client.post("/v1/scores", json={"answer": ANSWER, "spans": [shifted]})
    assert (refused.status_code, "has no 'Thx'" in refused.json()["error"]) == (422, True)


def test_reasoning_before_an_answer_is_not_judged_and_places_are_those_of_what_was_sent(
    client: TestClient,
) -> None:
    thoughts = "<think>Was it built in 1789? Or by Bob Miller in Rome?</think>\n\n"
    plain = client.post("/v1/detections", json=ASKED).json()
    said = client.post("/v1/detections", json={**ASKED, "answer": thoughts + ANSWER}).json()
    moved = [(span["start"] - len(thoughts), span["text"]) for span in said["spans"]]
    assert moved == [(span["start"], span["text"]) for span in plain["spans"]] != []
    assert said["note"] == "the reasoning before the answer was not judged"
    empty = client.post("/v1/detections", json={**ASKED, "answer": " "})
    assert (empty.status_code, "there is no answer to check" in empty.text) == (422, True)
    alone = client.post("/v1/detections", json={**ASKED, "answer": "<think>Was it 1789?"})
    assert alone.status_code == 422
    assert "reasoning does not end in an answer" in alone.text


def test_a_language_that_is_not_stated_is_told_from_the_texts() -> None:
    german = "Der Turm wurde von Ada nicht gebaut."
    assert DetectionRequest(answer=german).item().lang == "de"
    assert DetectionRequest(answer=german, lang="nl").item().lang == "nl"
    assert DetectionRequest(answer="1889", passages=(Passage(text=german),)).item().lang == "de"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param({"passages": [PASSAGE]}, id="a text in a list"),
        pytest.param({"passages": PASSAGE}, id="a text"),
        pytest.param({"contexts": [PASSAGE], "passages": None, "detector": None}, id="null"),
        pytest.param({"context": {"page_content": PASSAGE, "score": 0.5}}, id="as LangChain"),
        pytest.param({"passages": [{"text": PASSAGE, "rank": 1}]}, id="with what else is said"),
        pytest.param({"contexts": [[PASSAGE]]}, id="a list in a list"),
    ],
)
def test_passages_are_sent_as_files_have_them(client: TestClient, sent: dict[str, object]) -> None:
    whole = {"answer": ANSWER, "passages": [{"text": PASSAGE}]}
    found = client.post("/v1/detections", json={"answer": ANSWER, **sent})
    assert found.json() == client.post("/v1/detections", json=whole).json()
    assert found.json()["spans"]


def test_a_passage_that_says_nothing_keeps_its_place(client: TestClient) -> None:
    sent = {"answer": ANSWER, "passages": ["", None, PASSAGE]}
    found = client.post("/v1/detections", json=sent).json()
    assert [each["text"] for each in found["passages"]] == ["", "", PASSAGE]


def test_answers_of_a_job_keep_their_ids(client: TestClient) -> None:
    def sent(*ids: object) -> dict[str, object]:
        return {"answers": [{**ASKED, "id": name} for name in ids]}

    refused = client.post("/v1/jobs", json=sent("a", None, 1, "b"))
    assert (refused.status_code, refused.json()["error"]) == (
        422,
        "answers: two of them have the id '1'",
    )
    job_id = client.post("/v1/jobs", json=sent("a", None, 7)).json()["id"]
    with working_here(Settings.read()):
        Jobs().store.wait(job_id, timeout=SECONDS)
        results = client.get(f"/v1/jobs/{job_id}/results").json()["results"]
    assert [each["id"] for each in results] == ["a", "1", "7"]


def test_long_work_is_a_job_that_outlives_the_server(store: Store) -> None:
    store.import_records("people's", [Record(item=Item(id="a", answer=ANSWER))])
    theirs = Jobs().submit(
        RunRequest(dataset="people's", detectors=(DetectorSpec(detector="offline"),))
    )
    with serving(store) as client:
        job = client.post("/v1/jobs", json={"answers": [ASKED] * 120})
        assert (job.status_code, job.json()["total"], job.json()["done"]) == (202, 120, 0)
        job_id = job.json()["id"]
        assert job.headers["Location"] == f"/v1/jobs/{job_id}"
        assert [each["id"] for each in client.get("/v1/jobs").json()] == [job_id]
        assert client.get(f"/v1/jobs/{job_id}/results").json()["results"] == [None] * 100
        refused = client.post("/v1/jobs", json={"answers": [ASKED], "detector": "papelo"})
        assert (refused.status_code, "not offered" in refused.json()["error"]) == (404, True)
        for other in (theirs, job_id[:-1], "none"):
            assert client.get(f"/v1/jobs/{other}").status_code == 404
            assert client.delete(f"/v1/jobs/{other}").status_code == 404
    with working_here(Settings.read()), serving(store) as client:
        Jobs().store.wait(job_id, timeout=SECONDS)
        now = client.get(f"/v1/jobs/{job_id}").json()
        assert now == {"id": job_id, "state": "done", "done": 120, "failed": 0, "total": 120} | {
            "error": None
        }
        page = client.get(f"/v1/jobs/{job_id}/results").json()
        assert (len(page["results"]), page["next"]) == (100, 100)
        last = client.get(f"/v1/jobs/{job_id}/results", params={"start": 100}).json()
        assert (len(last["results"]), "next" in last) == (20, False)
        alone = client.post("/v1/detections", json={**ASKED, "id": 100}).json()
        assert last["results"][0] == alone | {"id": "100"}
        assert client.delete(f"/v1/jobs/{job_id}").status_code == 204
        assert client.get(f"/v1/jobs/{job_id}/results").status_code == 404
    assert [each.name for each in store.datasets()] == ["people's"]


def test_what_a_job_marked_is_no_rate_until_people_have_measured_it(
    client: TestClient, store: Store
) -> None:
    job_id = client.post("/v1/jobs", json={"answers": [ASKED] * 40}).json()["id"]
    early = client.get(f"/v1/jobs/{job_id}/rates")
    assert (early.status_code, early.json()["error"]) == (409, "nothing was found for this job yet")
    dataset = f"api-{job_id}"
    found = Annotation(annotator="offline", kind="detector")
    store.save_annotations(dataset, [(str(at), found) for at in range(40)])
    marked = client.get(f"/v1/jobs/{job_id}/rates").json()
    (table,) = marked["tables"]
    assert marked["is_raw"] is True
    assert table["title"].startswith("Marked by offline by lang")
    assert "are not a hallucination rate" in " ".join(table["remarks"])
    plan_measurement(store, dataset, MeasurementPlan(annotator="offline"))
    said = Annotation(annotator="Ada", kind="person")
    store.save_annotations(
        dataset, [(name, said) for name in measurement_queue(store, dataset)[:30]]
    )
    measured = client.get(f"/v1/jobs/{job_id}/rates").json()
    assert (measured["is_raw"], len(measured["tables"])) == (False, 2)
    title = measured["tables"][0]["title"]
    assert title.startswith(
        "Hallucinated answers. Rate of these items so far: 0.0 % (95 % CI 0.0 to "
    )
    assert measured["tables"][0]["rows"][0]["Future answers to"] > 0
    assert client.get("/v1/jobs/none/rates").status_code == 404


def test_a_job_is_stopped_before_it_is_forgotten(client: TestClient) -> None:
    job_id = client.post("/v1/jobs", json={"answers": [ASKED]}).json()["id"]
    assert client.delete(f"/v1/jobs/{job_id}").status_code == 202
    assert client.get(f"/v1/jobs/{job_id}").json()["state"] == "cancelled"


def theirs(store: Store, *names: str) -> None:
    """Make datasets of people's, with a review in each."""
    for name in names:
        store.import_records(name, [Record(item=Item(id="0", answer="theirs"))])
        store.apply(name, "0", "Ada", [SentOperation(name, 1, 0, SetStatus(status=Status.DONE))])


def test_a_dataset_that_is_called_like_a_job_is_none(store: Store) -> None:
    whole = "0123456789abcdef"
    names = ["api-", "api-9", "api-x", f"api-{whole}", f"api-{whole * 2}"]
    theirs(store, *names)
    for detection in (RunRequest(dataset=name, detectors=(OFFLINE,)) for name in names):
        Jobs().cancel(Jobs().submit(detection))
    ids = [each.id for each in Jobs().list()]
    with serving(store) as client:
        assert client.get("/v1/jobs").json() == []
        mine = client.post("/v1/jobs", json={"answers": [ASKED]}).json()["id"]
        near = [mine[:-1], mine[:1], mine[:16], mine + "0", mine.upper(), f" {mine}", f"{mine}%0A"]
        strange = ["9", "x", whole, whole * 2, "%00", "..", "..%2Fjobs"]
        strange += ["%D9%A1" * 16, "%F0%9F%98%80", "%ED%A0%80", "_" * 16, "%25" * 16, "a" * 9_999]
        for wrong in (*ids, *near, *strange, "*", "'--"):
            for path in (f"/v1/jobs/{wrong}", f"/v1/jobs/{wrong}/results"):
                for method in ("GET", "DELETE", "HEAD", "PUT", "PATCH"):
                    refused = client.request(method, path)
                    assert refused.status_code in (404, 405), (method, path)
        large = client.get(f"/v1/jobs/{mine}/results", params={"start": 10**30})
        assert large.json() == {"results": []}
    assert {each.name for each in store.datasets()} == {*names, f"api-{mine}"}


def test_what_people_reviewed_or_are_to_review_stays_when_a_job_is_forgotten(store: Store) -> None:
    with serving(store) as client:
        reviewed, grown, assigned, measured, left = (
            client.post("/v1/jobs", json={"answers": [ASKED]}).json()["id"] for _ in range(5)
        )
        plans: dict[str, dict[str, object]] = {
            assigned: {"overlap": 1},
            measured: {"measurement": MeasurementPlan(annotator="x")},
        }
        for job_id, plan in plans.items():
            store.change_settings(f"api-{job_id}", partial(DatasetSettings.model_copy, update=plan))
        store.apply(
            f"api-{reviewed}", "0", "Ada", [SentOperation("s", 1, 0, SetStatus(status=Status.DONE))]
        )
        store.import_records(f"api-{grown}", [Record(item=Item(id="theirs", answer=ANSWER))])
        assert len(client.get(f"/v1/jobs/{grown}/results").json()["results"]) == 1
        kept_jobs = (reviewed, grown, assigned, measured)
        for job_id in (*kept_jobs, left):
            assert client.delete(f"/v1/jobs/{job_id}").status_code == 202  # stopped
        for job_id in kept_jobs:
            kept = client.delete(f"/v1/jobs/{job_id}")
            assert (kept.status_code, "people have worked on" in kept.json()["kept"]) == (200, True)
            assert client.get(f"/v1/jobs/{job_id}").status_code == 404
        with ThreadPoolExecutor(4) as callers:
            gone = list(
                callers.map(lambda _: client.delete(f"/v1/jobs/{left}").status_code, range(4))
            )
        assert sorted(gone) == [204, 404, 404, 404]
        assert [each.name for each in store.datasets()] == [f"api-{job_id}" for job_id in kept_jobs]
        assert client.get("/v1/jobs").json() == []


def test_a_job_follows_its_dataset_to_another_name_and_to_no_other_dataset(store: Store) -> None:
    with serving(store) as client:
        renamed, deleted = (
            client.post("/v1/jobs", json={"answers": [ASKED] * 2}).json()["id"] for _ in range(2)
        )
        store.rename_dataset(f"api-{renamed}", "towers")
        store.delete_dataset(f"api-{deleted}")
        theirs(store, f"api-{renamed}", f"api-{deleted}")
        with working_here(Settings.read()):
            for job_id in (renamed, deleted):
                Jobs().store.wait(job_id, timeout=SECONDS)
        assert client.get(f"/v1/jobs/{renamed}").json()["state"] == "done"
        assert None not in client.get(f"/v1/jobs/{renamed}/results").json()["results"]
        gone = client.get(f"/v1/jobs/{deleted}").json()
        assert (gone["state"], gone["total"]) == ("failed", 2)
        assert gone["error"] == "the answers and results of this job were deleted"
        refused = client.get(f"/v1/jobs/{deleted}/results")
        assert (refused.status_code, refused.json()) == (404, {"error": gone["error"]})
        assert [each["id"] for each in client.get("/v1/jobs").json()] == [deleted, renamed]
        for job_id in (renamed, deleted):
            assert client.delete(f"/v1/jobs/{job_id}").status_code == 204
    names = {each.name: [who.name for who in each.annotators] for each in store.datasets()}
    assert names == {f"api-{renamed}": ["Ada"], f"api-{deleted}": ["Ada"]}


def test_all_jobs_under_way_count_and_no_others(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanlab.integrations.api_jobs._OPEN", 3)
    asked = {"answers": [ASKED]}
    ended = client.post("/v1/jobs", json=asked).json()["id"]
    stopped = client.delete(f"/v1/jobs/{ended}")
    assert (stopped.status_code, stopped.json()["state"]) == (202, "cancelled")
    assert client.post("/v1/jobs", json=asked).status_code == 202
    for number in range(4):  # newer ones of people's
        theirs(store, f"p{number}")
        Jobs().submit(RunRequest(dataset=f"p{number}", detectors=(OFFLINE,)))
    with ThreadPoolExecutor(4) as callers:
        started = list(
            callers.map(lambda _: client.post("/v1/jobs", json=asked).status_code, range(4))
        )
    assert sorted(started) == [202, 202, 429, 429]
    assert len(client.get("/v1/jobs").json()) == 4


def test_a_job_that_was_just_queued_counts_once(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanlab.integrations.api_jobs._OPEN", 2)
    submit, meanwhile = Jobs.submit, list[int]()

    def submit_and_ask(jobs: Jobs, request: RunRequest, *, job_id: str) -> str:
        submitted = submit(jobs, request, job_id=job_id)
        monkeypatch.setattr(Jobs, "submit", submit)
        meanwhile.append(client.post("/v1/jobs", json={"answers": [ASKED]}).status_code)
        return submitted

    monkeypatch.setattr(Jobs, "submit", submit_and_ask)
    assert client.post("/v1/jobs", json={"answers": [ASKED]}).status_code == 202
    assert meanwhile == [202]
    assert client.post("/v1/jobs", json={"answers": [ASKED]}).status_code == 429


def test_passages_of_an_index_are_offered(store: Store, tmp_path: Path) -> None:
    corpus = tmp_path / "towers.jsonl"
    corpus.write_text(json.dumps({"text": PASSAGE}) + "\n")
    build(corpus, tmp_path / "index")
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)), tmp_path / "index")
    app = http_api(offers, ApiJobs(store, offers), KEY)
    with TestClient(app, headers={"Authorization": f"Bearer {KEY}"}) as client:
        found = client.post("/v1/passages", json={"query": "Eiffel tower"})
        assert [each["text"] for each in found.json()] == [PASSAGE]
        assert client.post("/v1/passages", json={"query": "x", "k": 51}).status_code == 422


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        pytest.param(b"{}", {"Authorization": "Bearer wrong"}, 401, id="wrong-key"),
        pytest.param(b"{}", {"Authorization": ""}, 401, id="no-key"),
        pytest.param(b"{}", {}, 422, id="no-answer"),
        pytest.param(b'{"answer": "x", "option": 1}', {}, 422, id="unknown-field"),
        pytest.param(b'{"answer": "x", "detector": "papelo"}', {}, 404, id="not-offered"),
        pytest.param(b"x" * (LARGEST + 1), {}, 413, id="too-large"),
    ],
)
def test_what_may_not_be_asked_is_refused(
    body: bytes, headers: dict[str, str], status: int, client: TestClient
) -> None:
    headers = {"Content-Type": "application/json"} | headers
    refused = client.post("/v1/detections", content=body, headers=headers)
    assert refused.status_code == status
    assert list(refused.json()) == ["error"]


def test_too_large_a_stream_and_too_many_requests_are_refused(client: TestClient) -> None:
    stream = (b"x" * 65_536 for _ in range(LARGEST // 65_536 + 1))
    large = client.post("/v1/detections", content=stream)
    assert (large.status_code, list(large.json())) == (413, ["error"])
    replies = [client.get("/v1/detectors") for _ in range(20)]
    assert (replies[0].status_code, replies[-1].status_code) == (200, 429)
    assert replies[-1].headers["Retry-After"] == "5"
    assert client.get("/openapi.json", headers={"Authorization": ""}).status_code == 200


_A_SPAN = {"start": 0, "end": 1, "text": "a"}


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        pytest.param("POST", "detections", {}, "answer: it is missing", id="missing"),
        pytest.param(
            "POST", "detections", {"answer": 3}, "answer: it should be a text", id="no-text"
        ),
        pytest.param(
            "POST", "detections", {"answer": "a", "x": 1}, "x: there is no such field", id="field"
        ),
        pytest.param(
            *("POST", "detections", {"answer": "a", "lang": "de-"}),
            "lang: it should be a language tag such as en or pt-BR",
            id="language",
        ),
        pytest.param(
            *("POST", "detections", {"answer": "a", "passages": [1]}),
            "passages.0: it should be an object",
            id="passage",
        ),
        pytest.param(
            "POST", "jobs", {"answers": []}, "answers: it should have at least 1 item", id="none"
        ),
        pytest.param(
            *("POST", "scores", {"answer": "a", "gold": [{**_A_SPAN, "label": "\x01"}]}),
            "gold.0.label: it should have no control characters",
            id="control",
        ),
        pytest.param(
            *("POST", "jobs", {"answers": [{"answer": "a"}, {"answer": "  "}]}),
            "answers.1.answer: there is no answer to check",
            id="no-answer",
        ),
        pytest.param("POST", "detections", [], "the body: it should be an object", id="list"),
        pytest.param(
            "GET", "jobs/x/results?start=a", None, "start: it should be an integer", id="integer"
        ),
        pytest.param(
            *("GET", "jobs/x/results?limit=-1", None),
            "limit: there is no such parameter; available: start",
            id="parameter",
        ),
        pytest.param(
            *("GET", "jobs/x/rates?by=foo", None),
            "by: there is no such parameter; available: none",
            id="no-parameter",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(
    client: TestClient, method: str, path: str, body: object, said: str
) -> None:
    refused = client.request(method, f"/v1/{path}", json=body)
    assert refused.status_code == 422
    assert refused.json()["error"].startswith(said)


def test_every_error_has_one_shape(client: TestClient) -> None:
    judged = client.post("/v1/claims", json={"claim": ANSWER})
    assert (judged.status_code, judged.json()["error"]) == (
        404,
        "no detector that judges claims is offered",
    )
    wrong = client.post("/v1/detections", json={"answer": 1, "lang": "?"})
    assert (wrong.status_code, wrong.json()["error"]) == (
        422,
        "answer: it should be a text; lang: it should be a language tag such as en or pt-BR",
    )
    many = client.post("/v1/detections", json={"contexts": [1] * 12, "context": ["x"]}).json()
    assert many["error"].startswith("answer: it is missing; ")
    both = client.post("/v1/detections", json={**ASKED, "contexts": ["x"]})
    assert both.json()["error"] == "contexts: there is no such field"
    many = client.post("/v1/detections", json={**ASKED, "passages": [1] * 12}).json()
    assert many["error"].endswith("passages.9: it should be an object; and 2 more")
    for reply, status in (
        (client.post("/v1/detections", content=b"{"), 422),
        (client.get("/v1/nowhere"), 404),
        (client.delete("/v1/detectors"), 405),
        (client.post("/v1/passages", json={"query": "x"}), 404),  # no index is offered
        (client.get("/v1/jobs/none"), 404),
    ):
        assert (reply.status_code, list(reply.json())) == (status, ["error"])


def test_a_method_that_is_not_allowed_is_told_all_that_are(client: TestClient) -> None:
    for path, allowed in (("jobs", "GET, POST"), ("jobs/x", "DELETE, GET"), ("claims", "POST")):
        refused = client.patch(f"/v1/{path}")
        assert (refused.status_code, refused.headers["Allow"]) == (405, allowed)


def test_a_body_that_is_made_to_harm_is_refused_in_the_same_shape(client: TestClient) -> None:
    answer, spans = f'"answer": "{ANSWER}"', '"start": 0, "end": 3, "text": "The"'
    asked: dict[str, str | bytes] = {
        "half a key": '{"\\ud83d": 1}',
        "half a list": "[",
        "deep": "[" * 100_000,
        "deep answer": f'{{"answer": {"[" * 900}{"]" * 900}}}',
        "no number": f'{{{answer}, "spans": [{{{spans}, "prob": NaN}}]}}',
        "no end": f'{{{answer}, "spans": [{{{spans}, "prob": -Infinity}}]}}',
        "beyond": f'{{{answer}, "spans": [{{{spans}, "prob": 1e999}}]}}',
        "beyond an offset": f'{{{answer}, "spans": [{{{spans.replace("0", "1e999")}}}]}}',
        "many digits": f'{{{answer}, "spans": [{{{spans.replace("0", "9" * 5000)}}}]}}',
        "fewer digits": f'{{{answer}, "spans": [{{{spans.replace("0", "9" * 4000)}}}]}}',
        "a text": '"text"',
        "nothing": "",
        "packed": gzip.compress(b"{}"),
        "two bytes": json.dumps(ASKED).encode("utf-16"),
        "no UTF-8": b'{"answer": "\xed\xa0\xbd"}',
    }
    for number, (what, body) in enumerate(asked.items()):
        kind = ("application/json", "Application/JSON; Charset=x", "text/plain", "")[number % 4]
        headers = {"Content-Type": kind, "Content-Encoding": "gzip" if what == "packed" else ""}
        reply = client.post("/v1/scores", content=body, headers=headers)
        assert (reply.status_code, list(reply.json())) == (422, ["error"]), what
        assert len(reply.json()["error"]) < 500, what


def test_half_an_emoji_of_an_answer_is_replaced_and_the_others_go_their_way(
    client: TestClient,
) -> None:
    cut = json.dumps({**ASKED, "answer": ANSWER + " \ud83d", "question": "\udc4d?"})
    both = f'{{"answers": [{json.dumps(ASKED)}, {cut}]}}'
    job = client.post("/v1/jobs", content=both, headers={"Content-Type": "application/json"})
    assert (job.status_code, job.json()["total"]) == (202, 2)
    found = client.post("/v1/detections", content=cut, headers={"Content-Type": "application/json"})
    span = {"start": len(ANSWER) + 1, "end": len(ANSWER) + 2, "text": "\ud83d"}
    scored = json.dumps({"answer": ANSWER + " \ud83d", "spans": [span], "gold": [span]})
    found = client.post("/v1/scores", content=scored, headers={"Content-Type": "application/json"})
    assert (found.status_code, found.json()["iou"]) == (200, 1.0)
    for place in ("/v1/jobs/%00", "/v1/jobs/%ED%A0%BD", f"/v1/jobs/{'x' * 9999}"):
        reply = client.get(place)
        assert (reply.status_code, list(reply.json())) == (404, ["error"])
    reply = client.get("/v1/jobs/x/results", params={"start": "9" * 400})
    assert (reply.status_code, list(reply.json())) in ((404, ["error"]), (422, ["error"]))


def test_an_error_of_ours_has_the_same_shape_and_says_nothing_of_it(store: Store) -> None:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    app = http_api(offers, ApiJobs(store, offers), KEY)

    @app.get("/v1/broken")
    def broken() -> None:
        raise RuntimeError(KEY)

    client = TestClient(app, raise_server_exceptions=False)
    reply = client.get("/v1/broken", headers={"Authorization": f"Bearer {KEY}"})
    assert (reply.status_code, list(reply.json())) == (500, ["error"])
    assert KEY not in reply.text


def test_the_description_says_how_to_ask_and_what_may_come_back(client: TestClient) -> None:
    told = client.get("/openapi.json").json()
    (scheme,) = told["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    errors = {"400", "401", "413", "422", "429", "500", "502", "503"}
    for path, operations in told["paths"].items():
        for operation in operations.values():
            assert operation["security"], path
            assert errors <= set(operation["responses"]), path
            shapes = {
                operation["responses"][status]["content"]["application/json"]["schema"]["$ref"]
                for status in errors
            }
            assert shapes == {"#/components/schemas/ErrorReply"}, path
            is_named = "{job_id}" in path or path.endswith(("detections", "claims", "passages"))
            assert ("404" in operation["responses"]) is (
                is_named or operation["operationId"].startswith("start")
            )
    assert "Location" in told["paths"]["/v1/jobs"]["post"]["responses"]["202"]["headers"]


def test_spans_are_there_also_where_there_are_none(client: TestClient) -> None:
    found = client.post("/v1/detections", json={"answer": PASSAGE, "passages": [{"text": PASSAGE}]})
    assert found.json()["spans"] == []


def test_a_short_key_is_refused(store: Store) -> None:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    with pytest.raises(UsageError, match="SPANLAB_API_KEY"):
        http_api(offers, ApiJobs(store, offers), "short")


@pytest.mark.system("mermaid")
def test_a_claim_is_verified_by_a_detector_of_claims(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    def script(ask: ModelRequest) -> ScriptedReply:
        if "## decomposition ## ]]`" in ask.text:
            return say_fields(decomposition={"triplets": [], "topics": ["towers"]})
        return say_fields(step={"thought": "it stands there", "answer": "True"})

    model_server.script(script)
    monkeypatch.setenv("SPANLAB_MODEL", "scripted")
    with serving(store, "offline", "mermaid") as client:
        asked = {"claim": "The tower is old.", "passages": [{"text": "The tower is old."}]}
        found = client.post("/v1/claims", json=asked)
        assert [claim["verdict"] for claim in found.json()["claims"]] == ["supported"]


@contextmanager
def listening(app: ASGIApp, patience_for_heads: float = 0.3) -> Iterator[int]:
    """Serve on a real port, as `spanlab api` does but with little patience for heads."""

    class Hasty(HeadLimit):
        patience = patience_for_heads

    config = uvicorn.Config(app, port=0, log_level="critical", http=Hasty, ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


HEAD = f"POST /v1/detections HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"


@pytest.mark.parametrize(
    ("begun", "status"),
    [
        pytest.param("", b"", id="nothing"),
        pytest.param(HEAD, b"", id="head"),
        pytest.param(HEAD + "Content-Length: 90\r\n\r\n{", b"408", id="body"),
        pytest.param(HEAD.replace(KEY, "wrong") + "Content-Length: 90\r\n\r\n{", b"401", id="key"),
    ],
)
def test_a_request_that_is_begun_and_never_finished_ends(
    begun: str, status: bytes, store: Store
) -> None:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    inner = http_api(offers, ApiJobs(store, offers), KEY)
    with (
        listening(Gate(inner, KEY, patience=0.3)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=60) as caller,
    ):
        caller.sendall(begun.encode())
        received = b"".join(iter(lambda: caller.recv(4096), b""))  # until the server closes
    assert status in received[:20]
    assert bool(received) is bool(status)


@pytest.mark.parametrize(
    ("key", "status"), [pytest.param(KEY, 413, id="large"), pytest.param("wrong", 401, id="key")]
)
def test_who_sends_all_before_reading_learns_why_it_is_refused(
    store: Store, key: str, status: int
) -> None:
    """A connection that is closed while its caller still sends is reset, and the reply lost."""
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    inner = http_api(offers, ApiJobs(store, offers), KEY)
    with listening(Gate(inner, KEY), 60) as port:
        caller = HTTPConnection("127.0.0.1", port, timeout=60)
        large = b"x" * (4 * LARGEST)
        caller.request("POST", "/v1/detections", large, {"Authorization": f"Bearer {key}"})
        reply = caller.getresponse()
        assert (reply.status, list(json.loads(reply.read()))) == (status, ["error"])
        caller.close()


def test_the_right_key_is_answered_at_once_whoever_is_silent_or_has_a_wrong_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HeadLimit, "most_waiting", 20)
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    inner = http_api(offers, ApiJobs(store, offers), KEY)
    with ExitStack() as open_ones, listening(Gate(inner, KEY)) as port:
        silent = [
            open_ones.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            for _ in range(60)
        ]
        for connection in silent[::2]:
            connection.sendall(b"GET /v1/detectors HTTP/1.1\r\nHost: x\r\n")  # and no more

        def ask(key: str) -> tuple[bytes, float]:
            began = time.monotonic()
            with socket.create_connection(("127.0.0.1", port), timeout=60) as caller:
                head = f"GET /v1/detectors HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
                caller.sendall(f"{head}Connection: close\r\n\r\n".encode())
                received = b"".join(iter(lambda: caller.recv(4096), b""))
            return received[:12], time.monotonic() - began

        for _ in range(30):
            assert ask("wrong")[0] == b"HTTP/1.1 401"
        status, seconds = ask(KEY)
    assert status == b"HTTP/1.1 200"
    assert seconds < 5


def test_a_request_with_two_lengths_is_refused(client: TestClient) -> None:
    headers = {"Content-Length": "2", "Transfer-Encoding": "chunked"}
    refused = client.get("/v1/detectors", headers=headers)
    assert refused.status_code == 400
    assert "both Content-Length and Transfer-Encoding" in refused.json()["error"]


def test_scores_are_computed_beside_other_requests(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, answered = threading.Event(), threading.Event()
    score = ServiceOffers.score

    def long(offers: ServiceOffers, asked: ScoreRequest) -> ScoreReply:
        begun.set()
        assert answered.wait(60)
        return score(offers, asked)

    monkeypatch.setattr(ServiceOffers, "score", long)
    with ThreadPoolExecutor(1) as others:
        slow = others.submit(client.post, "/v1/scores", json={"answer": ANSWER})
        assert begun.wait(60)
        assert client.get("/v1/detectors").status_code == 200
        answered.set()
        assert slow.result().json()["iou"] == 1.0


def test_the_documentation_is_a_page_of_our_own_without_scripts(client: TestClient) -> None:
    page = client.get("/docs", headers={"Authorization": ""})
    assert (page.status_code, "<script" in page.text) == (200, False)
    assert "POST /v1/detections" in page.text
    assert "href='#DetectionRequest'" in page.text
    assert "id='DetectionRequest'" in page.text
    assert "http" not in page.text.replace("HTTP", "")
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha")
    for elsewhere in ("/redoc", "/docs/oauth2-redirect", "/docs/"):
        assert client.get(elsewhere, headers={"Authorization": ""}).status_code in (401, 404)


def test_traces_that_an_exporter_sends_become_answers_to_review(store: Store) -> None:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    app = http_api(offers, ApiJobs(store, offers), KEY, traces=TraceInbox(store, "traced"))
    with listening(app) as port:
        exporter = OTLPSpanExporter(
            f"http://127.0.0.1:{port}/v1/traces",
            headers={"Authorization": f"Bearer {KEY}"},
            compression=Compression.Gzip,
        )
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))  # a request for each span
        tracer = provider.get_tracer("pipeline")
        with tracer.start_as_current_span("answer", attributes={"input.value": "Who built it?"}):
            with tracer.start_as_current_span("retrieve") as span:
                span.set_attribute("retrieval.documents.0.document.content", PASSAGE)
            with tracer.start_as_current_span("chat m") as span:
                span.set_attribute("gen_ai.operation.name", "chat")
                span.set_attribute("gen_ai.input.messages", said("user", f"Who? {PASSAGE}"))
                span.set_attribute("gen_ai.output.messages", said("assistant", ANSWER))
            assert store.datasets() == []  # the root span has not ended
        with tracer.start_as_current_span("a health check"):
            pass
        provider.shutdown()
    (record,) = store.records("traced")
    assert (record.item.question, record.item.answer) == ("Who built it?", ANSWER)
    assert isinstance(record.item.process, Process)
    assert [node.text for node in record.item.process.nodes] == [PASSAGE, ANSWER]


def said(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def test_traces_as_json_are_stored_once_bounded_and_need_the_key(store: Store) -> None:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    app = http_api(offers, ApiJobs(store, offers), KEY, traces=TraceInbox(store, "traced"))
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.input.messages", "value": {"stringValue": said("user", PASSAGE)}},
        {"key": "gen_ai.output.messages", "value": {"stringValue": said("assistant", ANSWER)}},
    ]
    span = {"traceId": "0a" * 16, "spanId": "0b" * 8, "name": "chat", "attributes": attributes}
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    with TestClient(app, headers={"Authorization": f"Bearer {KEY}"}) as client:
        for _ in range(2):
            sent = client.post("/v1/traces", json=body)
            assert (sent.status_code, sent.json()) == (200, {})
        assert [record.item.answer for record in store.records("traced")] == [ANSWER]
        check = {"traceId": "1a" * 16, "spanId": "1b" * 8, "name": "health check"}
        checked = {"resourceSpans": [{"scopeSpans": [{"spans": [check]}]}]}
        told = client.post("/v1/traces", json=checked).json()["partialSuccess"]
        assert told["rejectedSpans"] == "0"
        assert "1 trace made no item so far: no span" in told["errorMessage"]
        # Which exporters do not send again.
        assert client.post("/v1/metrics", json={}).status_code == 404
        packed = gzip.compress(b" " * (LARGEST + 1))
        sent = client.post("/v1/traces", content=packed, headers={"Content-Encoding": "gzip"})
        assert sent.status_code == 413
        assert client.post("/v1/traces", content=b"{").status_code == 400
        asked = client.post("/v1/traces?dataset=other", json=body)
        assert (asked.status_code, "dataset" in asked.text) == (400, True)
        assert client.post("/v1/traces", json={"resourceSpans": [1]}).status_code == 400
        refused = client.post("/v1/traces", json=[])
        assert (refused.status_code, "is not an object but []" in refused.text) == (400, True)
        protobuf = {"Content-Type": "application/x-protobuf"}
        assert client.post("/v1/traces", content=b"\xff", headers=protobuf).status_code == 400
        wrong = {"Authorization": "Bearer of another key"}
        assert client.post("/v1/traces", json=body, headers=wrong).status_code == 401


def test_of_traces_that_do_not_end_the_oldest_are_dropped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_LARGEST", 25_000)  # room for two of the three
    inbox = TraceInbox(store, "traced")

    def send(trace: str, **span: object) -> None:
        one = {"traceId": trace * 16, "name": "chat", **span}
        inbox.add({"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]})

    for trace in ("0a", "0b", "0c"):
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": said("user", "word " * 2_000),
            "gen_ai.output.messages": said("assistant", f"It is {trace}."),
        }
        values = [{"key": key, "value": {"stringValue": text}} for key, text in chat.items()]
        send(trace, spanId="0d" * 8, parentSpanId="0e" * 8, attributes=values)
    for trace in ("0a", "0b", "0c"):
        send(trace, spanId="0e" * 8)
    answers = [record.item.answer for record in store.records("traced")]
    assert answers == ["It is 0b.", "It is 0c."]
    inbox.close()


def test_traces_are_asked_for_again_where_the_dataset_is_busy(store: Store) -> None:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    inbox = TraceInbox(store, "traced", patience=0)
    app = http_api(offers, ApiJobs(store, offers), KEY, traces=inbox)
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.output.messages", "value": {"stringValue": said("assistant", ANSWER)}},
    ]
    span = {"traceId": "0a" * 16, "spanId": "0b" * 8, "name": "chat", "attributes": attributes}
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    with TestClient(app, headers={"Authorization": f"Bearer {KEY}"}) as client:

        def importing() -> Iterator[Record]:
            sent = client.post("/v1/traces", json=body)
            assert (sent.status_code, sent.headers["Retry-After"]) == (503, "5")
            assert "an import into 'traced' is under way" in sent.json()["error"]
            yield Record(item=Item(id="a", answer="Other."))

        store.import_records("traced", importing())
        assert client.post("/v1/traces", json=body).json() == {}
    assert [record.item.answer for record in store.records("traced")] == ["Other.", ANSWER]


def test_health_needs_no_key_and_every_answer_and_log_line_has_its_request_s_id(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    app = http_api(offers, ApiJobs(store, offers), KEY)
    line = logging.StreamHandler(sys.stdout)
    line.setFormatter(JsonLines())
    logger = logging.getLogger("spanlab.cli.servers")
    logger.addHandler(line)
    before, logger.level = logger.level, logging.INFO
    remember(KEY)
    try:
        with TestClient(RequestLog(HealthPaths(app, store.ping))) as client:
            assert [client.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]
            refused = client.get("/v1/detectors", headers={"X-Request-ID": "not an id"})
        assert refused.status_code == 401
        assert re.fullmatch("[0-9a-f]{16}", refused.headers["X-Request-ID"])

        def away() -> None:
            raise StoreError(f"the database of {KEY} is away")

        with TestClient(RequestLog(HealthPaths(app, away))) as client:
            gone = client.get("/readyz", headers={"X-Request-ID": "probe-7"})
            assert client.get("/healthz").status_code == 200
    finally:
        logger.removeHandler(line)
        logger.level = before
    assert (gone.status_code, gone.headers["X-Request-ID"]) == (503, "probe-7")
    assert KEY not in gone.text
    written = capsys.readouterr().out
    assert KEY not in written
    lines = [json.loads(line) for line in written.splitlines()]
    assert lines[2]["request_id"] == refused.headers["X-Request-ID"]
    assert (lines[2]["path"], lines[2]["status"]) == ("/v1/detectors", 401)
    assert {line["request_id"] for line in lines if "not ready" in line["message"]} == {"probe-7"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("/srv/lab/home/spanlab.db: cannot be read", "spanlab.db: cannot be read"),
        ("‘/srv/lab/x y’ is taken; see https://a.example/b/c", None),
        ("POST /v1/jobs, not GET", "POST /v1/jobs, not GET"),
    ],
)
def test_errors_name_no_path_of_the_server(said: str, told: str | None) -> None:
    words = _without_paths(said)
    assert "/srv/lab" not in words
    assert told is None or words == told
    assert ("https://a.example/b/c" in said) == ("https://a.example/b/c" in words)

"""The JSON API, asked as other programs ask it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from spanlab.errors import UsageError
from spanlab.services.http_api import LARGEST, http_api
from spanlab.services.offers import Offers
from spanlab.testing import Ask, ModelServer, Reply, say_fields

KEY = "a-key-that-is-long-enough"
ANSWER = "The tower was built in 1989 by Ada Smith in Paris."
ASKED = {
    "answer": ANSWER,
    "question": "Who built it?",
    "passages": [{"text": "The tower was built in 1889 by Gustave Eiffel in Paris."}],
}


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = http_api(Offers(["offline"]), KEY, rate=20)
    with TestClient(app, headers={"Authorization": f"Bearer {KEY}"}) as opened:
        yield opened


def test_spans_come_back_with_evidence_and_are_scored(client: TestClient) -> None:
    assert client.get("/v1/detectors").json() == ["offline"]
    found = client.post("/v1/detections", json=ASKED)
    assert found.status_code == 200
    said = found.json()
    (year,) = (span for span in said["spans"] if "1989" in span["text"])
    assert ANSWER[year["start"] : year["end"]] == year["text"]
    assert said["passages"][year["evidence"][0]["passage"]] == ASKED["passages"][0]
    gold = {"answer": ANSWER, "spans": said["spans"], "gold": said["spans"]}
    assert client.post("/v1/scores", json=gold).json()["iou"] == 1.0
    shifted = {"start": 0, "end": 3, "text": "Thx"}
    refused = client.post("/v1/scores", json={"answer": ANSWER, "spans": [shifted]})
    assert (refused.status_code, "has no 'Thx'" in refused.json()["error"]) == (400, True)


def test_long_work_is_a_job(client: TestClient) -> None:
    job = client.post("/v1/jobs", json=ASKED)
    assert job.status_code == 202
    for _ in range(10):
        now = client.get(f"/v1/jobs/{job.json()['id']}").json()
        if now["state"] != "running":
            break
    assert (now["state"], now["progress"], now["result"]["detector"]) == ("done", 1.0, "offline")
    assert client.delete("/v1/jobs/none").status_code == 204
    assert client.get("/v1/jobs/none").status_code == 404


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        pytest.param(b"{}", {"Authorization": "Bearer wrong"}, 401, id="wrong-key"),
        pytest.param(b"{}", {"Authorization": ""}, 401, id="no-key"),
        pytest.param(b"{}", {}, 422, id="no-answer"),
        pytest.param(b'{"answer": "x", "option": 1}', {}, 422, id="unknown-field"),
        pytest.param(b'{"answer": "x", "detector": "papelo"}', {}, 400, id="not-offered"),
        pytest.param(b"x" * (LARGEST + 1), {}, 413, id="too-large"),
    ],
)
def test_what_may_not_be_asked_is_refused(
    body: bytes, headers: dict[str, str], status: int, client: TestClient
) -> None:
    headers = {"Content-Type": "application/json"} | headers
    assert client.post("/v1/detections", content=body, headers=headers).status_code == status


def test_too_large_a_stream_and_too_many_requests_are_refused(client: TestClient) -> None:
    stream = (b"x" * 65_536 for _ in range(LARGEST // 65_536 + 1))
    assert client.post("/v1/detections", content=stream).status_code in {400, 413}
    codes = [client.get("/v1/detectors").status_code for _ in range(20)]
    assert (codes[0], codes[-1]) == (200, 429)
    assert client.get("/openapi.json", headers={"Authorization": ""}).status_code == 200


def test_a_short_key_is_refused() -> None:
    with pytest.raises(UsageError, match="SPANLAB_API_KEY"):
        http_api(Offers(["offline"]), "short")


def test_a_claim_is_verified_by_a_detector_of_claims(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def script(ask: Ask) -> Reply:
        if "## decomposition ## ]]`" in ask.text:
            return say_fields(decomposition={"triplets": [], "topics": ["towers"]})
        return say_fields(step={"thought": "it stands there", "answer": "True"})

    model_server.script(script)
    monkeypatch.setenv("SPANLAB_MODEL", "scripted")
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path))
    app = http_api(Offers(["offline", "mermaid"]), KEY)
    with TestClient(app, headers={"Authorization": f"Bearer {KEY}"}) as client:
        asked = {"claim": "The tower is old.", "passages": [{"text": "The tower is old."}]}
        found = client.post("/v1/claims", json=asked)
        assert [claim["verdict"] for claim in found.json()["claims"]] == ["supported"]

"""The API by keys: what each role's key opens, and what no key, an old one or another does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update
from starlette.routing import Route
from starlette.testclient import TestClient

from spanlab.base.errors import UsageError
from spanlab.detection.selection import DetectorSelection
from spanlab.integrations.api_jobs import ApiJobs
from spanlab.integrations.http_api import http_api
from spanlab.integrations.offers import ServiceOffers
from spanlab.integrations.traces import TraceInbox
from spanlab.schema import Actor, Permission, Role
from spanlab.storage import Store
from spanlab.storage.tables import access_tokens

pytestmark = pytest.mark.system("offline")

KEY = "a-key-that-is-long-enough"
ASKED = {"answer": "The tower was built in 1989.", "passages": [{"text": "Built in 1889."}]}
JOB = {"answers": [ASKED]}


# Every route: what it needs, whether it is about a job, and what is sent.
ROUTES: dict[tuple[str, str], tuple[Permission | None, bool, object]] = {
    ("GET", "/docs"): (None, False, None),
    ("GET", "/openapi.json"): (None, False, None),
    ("GET", "/v1/detectors"): (Permission.READ, False, None),
    ("POST", "/v1/scores"): (Permission.READ, False, {"answer": "a", "spans": [], "gold": []}),
    ("POST", "/v1/passages"): (Permission.READ, False, {"query": "tower"}),
    ("POST", "/v1/detections"): (Permission.ADMINISTER, False, ASKED),
    ("POST", "/v1/claims"): (Permission.ADMINISTER, False, {"claim": "x"}),
    ("POST", "/v1/traces"): (Permission.ADMINISTER, False, {}),
    ("POST", "/v1/logs"): (Permission.ADMINISTER, False, {}),
    ("POST", "/v1/jobs"): (Permission.ADMINISTER, False, JOB),
    ("GET", "/v1/jobs"): (Permission.READ, False, None),
    ("GET", "/v1/jobs/{job_id}"): (Permission.READ, True, None),
    ("GET", "/v1/jobs/{job_id}/results"): (Permission.READ, True, None),
    ("GET", "/v1/jobs/{job_id}/rates"): (Permission.READ, True, None),
    ("DELETE", "/v1/jobs/{job_id}"): (Permission.ADMINISTER, True, None),  # last: they are gone
}


@contextmanager
def serving(store: Store, key: str = KEY) -> Iterator[TestClient]:
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    with TestClient(http_api(offers, ApiJobs(store, offers), key)) as client:
        yield client


def ask(client: TestClient, key: str, method: str, path: str, body: object = None) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    return client.request(method, f"/v1/{path}", json=body, headers=headers).status_code


def test_a_role_opens_what_it_is_for(store: Store) -> None:
    """A viewer looks, a lead of all does everything, others have no business here."""
    with serving(store) as client:
        job = client.post("/v1/jobs", json=JOB, headers={"Authorization": f"Bearer {KEY}"}).json()
        one = f"jobs/{job['id']}"
        spans = {"answer": "abc", "spans": [], "gold": []}
        looks: list[tuple[str, str, object, int]] = [
            ("GET", "detectors", None, 200),
            ("GET", "jobs", None, 200),
            ("GET", one, None, 200),
            ("GET", f"{one}/results", None, 200),
            ("POST", "scores", spans, 200),
        ]
        changes: list[tuple[str, str, object, int]] = [
            ("POST", "detections", ASKED, 200),
            ("POST", "claims", {"claim": "x"}, 404),
            ("POST", "jobs", JOB, 202),
            ("DELETE", one, None, 202),
        ]
        made = {role: store.access.make_token("key", role, None) for role in Role}
        for role, key in made.items():
            for method, path, body, status in looks:
                may = role is not Role.ANNOTATOR
                assert ask(client, key, method, path, body) == (status if may else 403), (
                    role,
                    path,
                )
            for method, path, body, status in changes:
                expected = status if role is Role.LEAD else 403
                assert ask(client, key, method, path, body) == expected, (role, path)


def test_a_key_for_a_dataset_sees_no_job_of_another(store: Store) -> None:
    with serving(store) as client:
        owner = {"Authorization": f"Bearer {KEY}"}
        ours, theirs = (client.post("/v1/jobs", json=JOB, headers=owner).json()["id"] for _ in "ab")
        for role in (Role.VIEWER, Role.LEAD):
            key = store.access.make_token("key", role, f"api-{ours}")
            headers = {"Authorization": f"Bearer {key}"}
            assert [job["id"] for job in client.get("/v1/jobs", headers=headers).json()] == [ours]
            assert ask(client, key, "GET", f"jobs/{ours}/results") == 200
            for what in ("", "/results", "/rates"):
                assert ask(client, key, "GET", f"jobs/{theirs}{what}") == 404
            assert ask(client, key, "DELETE", f"jobs/{ours}") == 403
            assert ask(client, key, "POST", "jobs", JOB) == 403


def test_every_route_goes_by_the_key_that_asks(store: Store) -> None:
    """All routes, by keys of all roles, for all datasets, for a job's own and for another."""
    offers = ServiceOffers(DetectorSelection(detectors=("offline",)))
    app = http_api(offers, ApiJobs(store, offers), KEY, traces=TraceInbox(store, "traces"))
    there = {
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert there == ROUTES.keys()
    with TestClient(app) as client:
        owner = {"Authorization": f"Bearer {KEY}"}
        ours, theirs = (client.post("/v1/jobs", json=JOB, headers=owner).json()["id"] for _ in "ab")
        scopes = (None, f"api-{ours}", f"api-{theirs}")
        keys = [
            (store.access.make_token("key", role, scope), role, scope)
            for role in Role
            for scope in scopes
        ]
        for (method, path), (needs, is_of_job, body) in ROUTES.items():
            at = path.replace("{job_id}", ours)
            for wrong in ("", "sl-" + "x" * 43):
                reply = client.request(method, at, json=body, headers={"Authorization": wrong})
                assert (reply.status_code == 401) is (needs is not None), (path, wrong)
            for key, role, scope in keys:
                headers = {"Authorization": f"Bearer {key}"}
                status = client.request(method, at, json=body, headers=headers).status_code
                may = Actor("", "", {None if scope is None else 1: frozenset({role})})
                if needs is not None and not may.may_somewhere(needs):
                    expected = {403}
                elif is_of_job and scope == f"api-{theirs}":
                    expected = {404}
                else:
                    expected = {200, 202, 204, 400, 409} | ({404} if not is_of_job else set())
                assert status in expected, (method, path, role, scope, status)


def test_what_is_no_key_any_more_opens_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    register, soon = store.access, datetime.now(UTC) + timedelta(hours=1)
    revoked = register.make_token("key", Role.LEAD, None)
    register.revoke_token("key", register.tokens("key")[0].id)
    store.import_records("d", [])
    ended = register.make_token("key", Role.LEAD, None, expires=soon)
    link = register.make_token("invitation", Role.VIEWER, "d", expires=soon + timedelta(hours=1))
    with store.writing(Permission.ADMINISTER) as connection:
        now = datetime.now(UTC).timestamp()
        old = access_tokens.c.expires == soon.timestamp()
        connection.execute(update(access_tokens).where(old).values(expires=now))
    with serving(store) as client:
        for wrong in (revoked, ended, link, "", "sl-", KEY[:-1], f"{KEY} ", "sl-" + "x" * 43):
            assert ask(client, wrong, "GET", "detectors") == 401, wrong
        assert client.get("/v1/detectors").status_code == 401
        assert ask(client, KEY, "GET", "detectors") == 200


def test_keys_alone_are_enough_and_none_is_not(store: Store) -> None:
    with pytest.raises(UsageError, match="spanlab keys create"), serving(store, ""):
        pass
    key = store.access.make_token("key", Role.VIEWER, None)
    with serving(store, "") as client:
        assert ask(client, key, "GET", "detectors") == 200
        assert client.get("/v1/detectors").status_code == 401

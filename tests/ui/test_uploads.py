"""What uploads may hold in memory, through the guard before Streamlit's own handler."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from spanlab.app import uploads
from spanlab.app.uploads import CERTIFICATES
from spanlab.app.visitor import FileGuard
from spanlab.people.logins import COOKIE, in_days
from spanlab.schema import Role
from spanlab.storage import Store

KIB = 1024
MIB = 1024 * KIB


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    """Streamlit's own store of files, in a runtime where no session has a browser any more."""
    manager = MemoryUploadedFileManager("/_stcore/upload_file")
    runtime = SimpleNamespace(uploaded_file_mgr=manager, is_active_session=lambda _: False)
    monkeypatch.setattr(Runtime, "instance", lambda: runtime)
    return manager


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path))
    with Store.open() as opened:
        opened.import_records("ours", [])
        yield opened


def _serving(store: Store, files: MemoryUploadedFileManager, most: int) -> TestClient:
    async def keep(request: Request) -> Response:
        place = request.path_params
        record = UploadedFileRec(place["file"], "a.txt", "text/plain", await request.body())
        files.add_file(place["session"], record)
        return Response(status_code=204)

    path = "/_stcore/upload_file/{session}/{file}"
    app = Starlette(routes=[Route(path, keep, methods=["PUT"])])
    return TestClient(FileGuard(app, lambda: store, most))


def _put(client: TestClient, place: str, kib: int) -> int:
    return client.put(f"/_stcore/upload_file/{place}", content=b"x" * kib * KIB).status_code


def test_one_person_takes_half_at_most_and_all_together_no_more_than_there_is(
    store: Store, files: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_INVITE", "yes")
    cookies = [_arrive(store, Role.VIEWER) for _ in range(3)]
    with _serving(store, files, 100 * KIB) as client:
        assert _put(client, "s0/a", 1) == 403
        client.cookies.set(COOKIE, cookies[0])
        assert [_put(client, f"s1/{name}", 20) for name in "abc"] == [204, 204, 413]
        assert _put(client, "s2/a", 20) == 413  # another tab of the same person
        client.cookies.set(COOKIE, cookies[1])
        assert _put(client, "s3/a", 45) == 204
        client.cookies.set(COOKIE, cookies[2])
        assert [_put(client, "s4/a", kib) for kib in (20, 15)] == [413, 204]
        nothing = client.put("/_stcore/upload_file/s4/b", content=iter([b"x"]))  # of no length
        assert nothing.status_code == 411


def _arrive(store: Store, role: Role) -> str:
    link = (
        store.access.owners_link(in_days(1)).token
        if role is Role.LEAD
        else store.access.make_token("invitation", role, "ours", expires=in_days(1))
    )
    return store.access.accept(link) or ""


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        pytest.param(Role.LEAD, [204, 204, 413], id="a lead imports files"),
        pytest.param(Role.VIEWER, [413, 204, 413], id="a viewer checks certificates"),
        pytest.param(Role.ADJUDICATOR, [413, 204, 413], id="an adjudicator sees them, too"),
        pytest.param(Role.ANNOTATOR, [403, 403, 403], id="an annotator uploads nothing"),
    ],
)
def test_who_may_use_what_is_uploaded_uploads_it(
    role: Role,
    statuses: list[int],
    store: Store,
    files: MemoryUploadedFileManager,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPANLAB_INVITE", "yes")
    with _serving(store, files, 40 * MIB) as client:
        client.cookies.set(COOKIE, _arrive(store, role))
        kibs = enumerate((CERTIFICATES // KIB + 1, 1024, 20 * 1024))
        assert [_put(client, f"s/{number}", kib) for number, kib in kibs] == statuses


def test_files_go_with_the_session_that_they_belong_to(
    store: Store, files: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_LOOK", 0.05)
    monkeypatch.setattr(uploads, "_LEFT", 0.1)
    with _serving(store, files, 100 * KIB) as client:  # without a login: one's own machine
        assert [_put(client, f"gone/{name}", 45) for name in "abc"] == [204, 204, 413]
        until = time.monotonic() + 30
        while files.file_storage and time.monotonic() < until:
            time.sleep(0.05)
        assert not files.file_storage
        assert _put(client, "new/a", 90) == 204


def test_who_only_asks_whether_a_file_is_there_gets_nothing_of_it(store: Store) -> None:
    app = Starlette(
        routes=[Route("/media/{name}", lambda _: Response("a,b", media_type="text/csv"))]
    )
    with TestClient(FileGuard(app, lambda: store)) as client:
        asked = client.get("/media/t.csv", headers={"sec-fetch-mode": "cors"})
        assert (asked.status_code, asked.content) == (200, b"")
        assert client.get("/media/t.csv").content == b"a,b"

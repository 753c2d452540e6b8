"""The links of invitations, asked as browsers ask them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import file_util

from spanlab.app.visitor import routes
from spanlab.people.logins import COOKIE, INVITATION, in_days, owners_link
from spanlab.schema import Item, Record, Role
from spanlab.storage import Store
from spanlab.storage.access import digest


@pytest.fixture
def store(store: Store) -> Store:
    store.import_records("ours", [Record(item=Item(id="1", answer="A."))])
    return store


def _client(store: Store) -> TestClient:
    return TestClient(Starlette(routes=routes(lambda: store)), follow_redirects=False)


def _link(store: Store) -> str:
    return store.access.make_token("invitation", Role.ANNOTATOR, "ours", expires=in_days(1))


def test_the_page_of_a_link_has_the_apps_font(store: Store) -> None:
    page = _client(store).get(INVITATION, params={"to": _link(store)})
    (font,) = re.findall(r"src: url\(/static/(\S+)\)", page.text)
    assert (Path(file_util.get_static_dir()) / "static" / font).is_file()
    assert "font-src 'self';" in page.headers["Content-Security-Policy"]


def test_a_double_click_gives_the_same_cookie(store: Store) -> None:
    client, link = _client(store), _link(store)
    assert client.get(INVITATION, params={"to": link}).status_code == 200
    first, second = (client.post(INVITATION, data={"to": link}) for _ in range(2))
    assert [first.status_code, second.status_code] == [303, 303]
    assert first.cookies[COOKIE] == second.cookies[COOKIE]


def test_a_cookie_that_the_server_did_not_sign_for_this_link_makes_nothing(store: Store) -> None:
    """Whoever planted it could make the invitation's cookie once they come by the link."""
    mine, other = _client(store), _client(store)
    other.get(INVITATION, params={"to": _link(store)})
    for planted in ("x" * 60, other.cookies["spanlab_browser"]):
        client, link = _client(store), _link(store)
        client.cookies.set("spanlab_browser", planted)
        cookie = client.post(INVITATION, data={"to": link}).cookies[COOKIE]
        assert cookie != digest(f"{planted} {link}")
        mine.cookies.set("spanlab_browser", planted)
        assert mine.post(INVITATION, data={"to": link}).status_code == 404


def test_a_second_start_says_that_it_ends_the_first_ones_link(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_URL", "http://localhost:8501")
    first, second = owners_link(store), owners_link(store)
    assert len(first) == 1
    assert second[1:] == (
        "the link that an earlier start printed, and nobody opened, is no longer valid",
    )

"""Links to reports: what they open, when they end, and who makes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import BytesIO

import pytest

from spanlab.base.errors import AccessError, UsageError
from spanlab.data import report_links
from spanlab.data.report_links import share_report, shared_report
from spanlab.data.versions import snapshot
from spanlab.people.logins import in_days
from spanlab.schema import Actor, Annotation, AnnotatorKind, Item, Record, Role, Span
from spanlab.storage import Store

ANSWER = "It opened in 1887."


@pytest.fixture
def store(store: Store) -> Store:
    marked = Annotation(
        annotator="Ada", kind=AnnotatorKind.PERSON, spans=(Span.of(ANSWER, 13, 17, label="Year"),)
    )
    store.import_records("d", [Record(item=Item(id="a", answer=ANSWER), annotations=(marked,))])
    return store


def test_a_link_opens_its_page_and_no_other_door(store: Store) -> None:
    secret = share_report(store, "d", in_days(1)).partition("to=")[2]
    page = shared_report(store, secret)
    assert page is not None
    assert b"Ada" in page
    assert store.access.bearer(secret) is None
    assert store.access.bearer(secret, "invitation") is None
    assert store.access.accept(secret) is None
    key = store.access.make_token("key", Role.VIEWER, "d")
    assert shared_report(store, key) is None
    (listed,) = store.access.tokens("report")
    assert (listed.dataset, listed.label, listed.code) == ("d", "d", None)


def test_a_link_ends_with_its_days_its_dataset_and_a_person_who_is_forgotten(store: Store) -> None:
    late = datetime.now(UTC) - timedelta(seconds=1)
    with pytest.raises(UsageError, match="has passed"):
        share_report(store, "d", late)
    secret = share_report(store, "d", in_days(1)).partition("to=")[2]
    store.bin_dataset("d")
    assert shared_report(store, secret) is None
    store.restore_dataset("d")
    assert shared_report(store, secret) is not None
    store.forget_person("Ada", keep=True)
    assert shared_report(store, secret) is None
    (gone,) = store.access.tokens("report")
    assert gone.revoked is not None


def test_who_does_not_lead_makes_no_link_and_none_is_too_large(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = store.acting_as(Actor("x", "X", {None: frozenset({Role.VIEWER})}))
    with pytest.raises(AccessError):
        share_report(viewer, "d", in_days(1))
    assert viewer.access.tokens("report") == []
    monkeypatch.setattr(report_links, "MOST", 1000)
    with pytest.raises(UsageError, match="larger than"):
        share_report(store, "d", in_days(1))
    assert store.access.tokens("report") == []


def test_a_version_is_shared_by_its_dataset_s_lead(store: Store) -> None:
    snapshot(store, "d", "one")
    secret = share_report(store, "d@one", in_days(1)).partition("to=")[2]
    page = shared_report(store, secret)
    assert page is not None
    assert b"d@one" in page
    assert isinstance(page, bytes)
    assert BytesIO(page).readline().startswith(b"<!DOCTYPE html>")

"""What is done is told to the configured addresses, signed, and nobody waits for it."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from receiver import Posted, Receiver, receiving

from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.output import notices
from spanlab.review.writes import apply_writes
from spanlab.schema import Item, Record
from spanlab.storage import Store

SECRET = "a-secret-of-two-programs"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Receiver]:
    with receiving() as receiver:
        monkeypatch.setenv("SPANLAB_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("SPANLAB_WEBHOOKS", f"{receiver.url}/hook")
        monkeypatch.setenv("SPANLAB_WEBHOOK_SECRET", SECRET)
        yield receiver


@pytest.fixture
def store(receiver: Receiver) -> Iterator[Store]:
    with Store.open() as store:
        store.import_records("mine", [Record(item=Item(id="i1", answer="In 1989."))])
        yield store


def write(seq: int, **op: Any) -> dict[str, Any]:
    """One operation as a browser sends it."""
    log = {"dataset": "mine", "item": "i1", "reviewer": "ada"}
    return {"session": "s", "seq": seq, "base": seq - 1, **log, "op": op}


def done(seq: int, status: str = "done") -> dict[str, Any]:
    return write(seq, kind="status", status=status)


def told(posted: Posted) -> dict[str, Any]:
    """Return what a notice says, whose signature is right."""
    right = hmac.new(SECRET.encode(), posted.body, hashlib.sha256).hexdigest()
    assert posted.headers["X-Spanlab-Signature"] == f"sha256={right}"
    found: dict[str, Any] = json.loads(posted.body)
    return found


def test_an_item_that_somebody_has_done_is_told_with_names_alone(
    store: Store, receiver: Receiver
) -> None:
    span = write(1, kind="add", span="a1", start=3, end=7)
    outcomes = apply_writes(store, [span, done(2)], "ada")
    assert [each.stored for each in outcomes] == [True, True]
    (posted,) = receiver.after(1)
    notice = told(posted)
    assert posted.path == "/hook"
    assert time.time() - notice.pop("at") < 60
    assert notice == {
        "event": "item done",
        "id": "s-2",
        "dataset": "mine",
        "item": "i1",
        "annotator": "ada",
    }
    apply_writes(store, [done(3, "skipped"), done(4) | {"base": 0}], "ada")
    time.sleep(0.3)
    assert len(receiver.posted) == 1


def test_a_refusal_is_tried_again_where_it_was_and_review_waits_for_nobody(
    store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.statuses, receiver.delay = [307], 5.0  # a redirect is a refusal like any other
    apply_writes(store, [done(1)], "ada")
    assert receiver.statuses == [307]  # which nobody has been answered yet
    monkeypatch.setattr(notices, "_WAITING", 1)
    apply_writes(store, [done(2, "skipped"), done(3)], "ada")  # not told: too many wait
    first, second = receiver.after(2)
    assert first.body == second.body
    assert [first.path, second.path] == ["/hook"] * 2


def test_a_job_that_ends_is_told_before_its_process_ends(store: Store, receiver: Receiver) -> None:
    command = str(Path(sys.executable).with_name("spanlab"))
    subprocess.run([command, "annotate", "mine", "--detector", "offline"], check=True)
    (posted,) = receiver.after(1)
    notice = told(posted)
    assert (notice["event"], notice["state"], notice["dataset"]) == ("job done", "done", "mine")
    assert notice["kind"] == "detect"
    assert notice["job"]


def test_addresses_need_a_secret_and_are_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANLAB_WEBHOOKS", "https://a.example/hook, https://b.example")
    with pytest.raises(UsageError, match="SPANLAB_WEBHOOK_SECRET"):
        Settings.read()
    monkeypatch.setenv("SPANLAB_WEBHOOK_SECRET", SECRET)
    assert len(Settings.read().webhooks) == 2
    assert SECRET not in repr(Settings.read())
    monkeypatch.setenv("SPANLAB_WEBHOOKS", "ftp://a.example")
    with pytest.raises(UsageError, match="SPANLAB_WEBHOOKS"):
        Settings.read()

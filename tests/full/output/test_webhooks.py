"""What is done is told to the configured addresses, signed, and nobody waits for it."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import suppress
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


def endless(head: bytes, piece: bytes, pause: float = 0.0) -> Callable[[socket.socket], None]:
    """A receiver that begins so and then goes on until it is left."""

    def answer(caller: socket.socket) -> None:
        caller.sendall(head)
        while True:
            caller.sendall(piece)
            time.sleep(pause)

    return answer


HOSTILE: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "silence": (lambda caller: time.sleep(3), "TimeoutError"),
    # Which of them it is depends on how much of the request has come by then.
    "closed": (lambda caller: caller.close(), "(RemoteProtocolError|ReadError|WriteError)"),
    "no HTTP": (lambda caller: caller.sendall(b"\0\xff" * 40_000), "RemoteProtocolError"),
    "a head a byte at a time": (endless(b"HTTP/1.1 200 OK\r\nX: ", b"a", 0.1), "TimeoutError"),
    "an endless head": (endless(b"HTTP/1.1 200 OK\r\n", b"X: a\r\n" * 1000), "RemoteProtocolError"),
    "an endless body": (endless(b"HTTP/1.1 500 No\r\n\r\n", b"a" * 65_536), "it answers 500"),
    "into the local network": (
        lambda caller: caller.sendall(
            b"HTTP/1.1 302 Go\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
        ),
        "it answers 302",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_receiver_that_is_made_to_harm_ends_in_words(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answer, reason = HOSTILE[name]

    def take(caller: socket.socket) -> None:
        with caller, suppress(OSError):
            caller.recv(65_536)
            answer(caller)

    def serve() -> None:
        with suppress(OSError):  # the test is over
            while True:
                threading.Thread(target=take, args=listener.accept()[:1], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        monkeypatch.setenv("SPANLAB_WEBHOOKS", f"http://127.0.0.1:{listener.getsockname()[1]}/hook")
        monkeypatch.setenv("SPANLAB_WEBHOOK_SECRET", SECRET)
        monkeypatch.setattr(notices, "_SECONDS", 1.0)
        monkeypatch.setattr(notices, "_PAUSES", (0.1,))
        tracemalloc.start()
        notices.notify("item done", dataset="mine")
        under_way = list(notices._under_way())
        assert not wait(under_way, 30).not_done
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert under_way
    assert peak < 8 << 20
    assert re.search(f"127.0.0.1 was not told: {reason}", caplog.text)

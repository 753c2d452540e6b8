"""Traces of pipelines become answers on both databases, each once and in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from spanlab.base.settings import Settings
from spanlab.integrations import waiting
from spanlab.integrations.traces import TraceInbox
from spanlab.storage import Store

_SERVER = """
import json, sys
from spanlab.integrations.traces import TraceInbox
from spanlab.base.settings import Settings
from spanlab.storage import Store

with Store.open(Settings.model_validate_json(sys.argv[1])) as store:
    inbox = TraceInbox(store, "traced")
    print("ready", flush=True)
    for line in sys.stdin:
        print(inbox.add(json.loads(line)), flush=True)
"""


def said(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def call(number: int, text: str = "The tower is old.") -> dict[str, Any]:
    """A model's call of a trace, whose root comes later."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": said("user", text),
        "gen_ai.output.messages": said("assistant", f"Answer {number}."),
    }
    values = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    return request(number, "chat", spanId="b", parentSpanId="a", attributes=values)


def request(number: int, name: str, **more: Any) -> dict[str, Any]:
    span = {"traceId": f"{number:032x}", "spanId": "a", "name": name, **more}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def answers(store: Store) -> list[str]:
    return [record.item.answer for record in store.records("traced")]


def test_exporters_send_at_once_and_again_and_every_answer_is_there_once(store: Store) -> None:
    inbox = TraceInbox(store, "traced")

    def send(number: int) -> None:
        for _ in range(2):
            inbox.add(call(number))
            inbox.add(request(number, "pipeline"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(24)))
    assert sorted(answers(store)) == sorted(f"Answer {number}." for number in range(24))
    inbox = TraceInbox(store, "traced")  # a restart knows what is stored
    inbox.add(call(3))
    assert inbox.add(request(3, "pipeline")) == (0, "")
    assert len(answers(store)) == 24


def test_two_servers_store_into_one_dataset_at_once(store: Store, settings: Settings) -> None:
    command = [sys.executable, "-c", _SERVER, settings.model_dump_json()]
    pipe = subprocess.PIPE
    servers = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(2)
    ]
    for server in servers:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"

    def send(at: int) -> tuple[str, str]:
        numbers = range(at, 40, 2)
        lines = (json.dumps(each) for n in numbers for each in (call(n), request(n, "pipeline")))
        return servers[at].communicate("\n".join(lines), timeout=120)

    with ThreadPoolExecutor(2) as pool:
        for said, wrong in pool.map(send, range(2)):
            assert said == "(0, '')\n" * 40, wrong
    assert sorted(answers(store)) == sorted(f"Answer {number}." for number in range(40))


def test_of_traces_that_do_not_end_the_oldest_go(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_LARGEST", waiting._LARGEST // 100)
    inbox = TraceInbox(store, "traced")
    for number in range(17):
        inbox.add(call(number, "a" * 40_000))
    rejected, told = inbox.add(request(0, "pipeline"))  # whose call had to go
    assert (rejected, told.partition(":")[0]) == (0, "1 trace made no item so far")
    for number in (1, 16):
        assert inbox.add(request(number, "pipeline")) == (0, "")
    assert answers(store) == ["Answer 1.", "Answer 16."]

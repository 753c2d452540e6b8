"""Calls go through the proxy that the environment names, unless it says not to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from spanlab.models import Meter, ModelChoice, language_model
from spanlab.models.cache import answer_file
from spanlab.testing import ModelServer, say

ELSEWHERE = "http://model.invalid/v1"


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
def test_a_proxy_of_the_environment_is_used(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv(name, f"http://127.0.0.1:{model_server.port}")
    model_server.script(lambda ask: say("through the proxy"))
    choice = ModelChoice(model="m", base_url=ELSEWHERE, retries=0)
    for cache in (None, answer_file(tmp_path)):
        lm = language_model(choice, Meter(), cache=cache)
        assert lm("in a thread") == ["through the proxy"]
        assert asyncio.run(lm.acall("in a loop")) == ["through the proxy"]
    assert model_server.count == 4
    assert {ask.headers["host"] for ask in model_server.requests} == {"model.invalid"}


def test_no_proxy_is_used_where_the_environment_says_so(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    choice = ModelChoice(model="m", base_url=model_server.url, retries=0)
    lm = language_model(choice, Meter(), cache=None)
    assert lm("?") == ["ok"]
    assert asyncio.run(lm.acall("?")) == ["ok"]

"""Servers that differ: what they wrap an answer in, what they refuse, how they fail."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model_fixtures import KEY
from model_task import Task, marked
from wire import HOSTILE, MIB, head, wire

from spanlab.base import redaction
from spanlab.base.errors import BudgetError, SpanlabError, UsageError
from spanlab.base.inbound import reply_limit
from spanlab.base.redaction import redact, remember
from spanlab.models import Meter, ModelChoice, ModelLayers, TokenPrice, translate
from spanlab.schema.usage import Budget, Usage
from spanlab.testing import (
    MODES,
    ModelRequest,
    ModelServer,
    ScriptedReply,
    caller_with,
    fail,
    in_turn,
    say,
)
from spanlab.testing.replies import FORMS, THOUGHTS

Choose = Callable[..., ModelChoice]
ALL = {"temperature": 0.2, "max_tokens": 500, "seed": 42, "reasoning_effort": "low"}
SERVERS = sorted(MODES.keys() - FORMS.keys() - THOUGHTS.keys())


def four(ask: ModelRequest) -> ScriptedReply:
    """Say 4 in the form asked for."""
    return say('{"answer": "4"}') if "JSON object" in ask.text else marked("4")


def asked(task: Task, *, threaded: bool = False) -> str:
    """Return the answer, or the message of what it ended in."""
    try:
        return task.ask("?") if threaded else asyncio.run(task.aask("?"))
    except Exception as error:  # noqa: BLE001 - of all kinds, as dspy raises them
        return str(translate(error))


@pytest.mark.parametrize("mode", SERVERS)
def test_an_answer_is_read_and_an_error_is_said_in_words(
    model_server: ModelServer, choose: Choose, mode: str
) -> None:
    model_server.script(four)
    model_server.mode = mode
    said = asked(Task(choose(structured="json" in mode, **ALL), Meter(), None))
    words = MODES[mode].fails_with
    assert words in said if words else said == "4"


REFUSING = {
    "no-response-format": ("response_format", "left out"),
    "no-json-schema": ("response_format", "sent in llama.cpp's"),
    "no-system-role": ("system message", "is part of the user's"),
    "no-temperature": ("temperature", "left out"),
    "max-completion-tokens": ("max_tokens", "sent as max_completion_tokens"),
    "no-seed": ("seed", "left out"),
    "no-reasoning-effort": ("reasoning_effort", "left out"),
}


@pytest.mark.parametrize("mode", REFUSING)
def test_what_a_server_refuses_is_left_out_from_then_on(
    model_server: ModelServer, choose: Choose, mode: str
) -> None:
    """One call is refused; later ones, of other clients too, leave it out, and say so."""
    model_server.script(four)
    model_server.mode = mode
    choice = choose(structured=mode in {"no-response-format", "no-json-schema"}, **ALL)
    for _ in range(2):
        meter = Meter()
        with meter.calls() as used:
            assert asyncio.run(Task(choice, meter, None).aask("?")) == "4"
        (remark,) = used.remarks
        assert all(words in remark for words in REFUSING[mode])
        assert (meter.usage.calls, meter.usage.failed) == (1, 0)
    tries = 2 if mode == "no-response-format" else 1  # a schema is tried in both forms
    assert model_server.count == tries + 2
    refused, *taken = (ask.body for ask in (model_server.requests[0], *model_server.requests[-2:]))
    assert taken[0] == taken[1]
    differing = {name for name in {*refused, *taken[0]} if refused.get(name) != taken[0].get(name)}
    expected = {
        "no-system-role": {"messages"},
        "max-completion-tokens": {"max_tokens", "max_completion_tokens"},
    }
    assert differing == expected.get(mode, {REFUSING[mode][0]})


def test_the_system_message_is_merged_into_the_users(
    model_server: ModelServer, choose: Choose
) -> None:
    model_server.script(four)
    model_server.mode = "no-system-role"
    assert asked(Task(choose(), Meter(), None)) == "4"
    first, second = (ask.messages for ask in model_server.requests)
    assert [each["role"] for each in second] == ["user"]
    assert second[0]["content"] == f"{first[0]['content']}\n\n{first[1]['content']}"


def test_a_limit_under_neither_name_is_left_out(model_server: ModelServer, choose: Choose) -> None:
    def script(ask: ModelRequest) -> ScriptedReply:
        refused = next((name for name in ask.body if name.startswith("max_")), None)
        return fail(400, f"Unsupported parameter: {refused}") if refused else marked("4")

    model_server.script(script)
    assert asked(Task(choose(**ALL), Meter(), None)) == "4"
    assert model_server.count == 3


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        pytest.param({}, fail(400, "temperature must be set"), id="not sent"),
        pytest.param(ALL, fail(402, "more credits, or fewer max_tokens"), id="no credit"),
        pytest.param(ALL, fail(429, "lower max_tokens"), id="rate limit"),
        pytest.param(ALL, fail(400, "max_tokens above the maximum context length"), id="too long"),
    ],
)
def test_what_is_no_refusal_of_an_option_leaves_none_out(
    model_server: ModelServer, choose: Choose, options: dict[str, Any], refusal: ScriptedReply
) -> None:
    model_server.script(in_turn(refusal, marked("4")))
    task = Task(choose(**options), Meter(), None)
    assert refusal.body["error"]["message"] in asked(task)
    assert asked(task) == "4"
    first, second = model_server.requests
    assert first.body == second.body


def test_an_option_refused_under_every_name_ends_in_the_failure(
    model_server: ModelServer, choose: Choose
) -> None:
    model_server.script(lambda ask: fail(400, "temperature must be low"))
    assert "temperature must be low" in asked(Task(choose(**ALL), Meter(), None))
    assert model_server.count == 2


@pytest.mark.parametrize("mode", ["usage-null", "usage-missing"])
def test_a_budget_counts_tokens_that_the_endpoint_does_not(
    model_server: ModelServer, choose: Choose, mode: str
) -> None:
    model_server.script(four)
    model_server.mode = mode
    price = TokenPrice(input=1000, cached=1000, output=1000)
    meter = Meter(Budget(cost=0.5))
    task = Task(choose(price=price), meter, None)
    ended = next(said for said in (asked(task) for _ in range(20)) if said != "4")
    assert "0.5 US dollars" in ended
    usage = meter.usage
    assert usage.uncounted == usage.calls == model_server.count
    assert usage.cost == pytest.approx(usage.tokens / 1000)
    assert 100 < usage.input_tokens / usage.calls < 400


def test_money_of_unknown_amount_stops_with_that_reason(choose: Choose) -> None:
    meter = Meter(Budget(cost=1.0), spent=Usage(calls=1, cost=None))
    with pytest.raises(BudgetError, match="the price of earlier calls is unknown"):
        asyncio.run(meter.admit())


DEPLOYED = "/openai/deployments/four"


def test_azures_address_and_its_key(model_server: ModelServer, choose: Choose) -> None:
    model_server.script(four)
    base = model_server.url.removesuffix("/v1") + DEPLOYED
    for address in (f"{base}?api-version=2024-10-21", f"{base}/chat/completions?api-version=1"):
        assert asked(Task(choose(base_url=address), Meter(), None)) == "4"
    first, second = model_server.requests
    assert first.path == f"{DEPLOYED}/chat/completions?api-version=2024-10-21"
    assert second.path == f"{DEPLOYED}/chat/completions?api-version=1"
    assert first.headers["api-key"] == KEY
    assert "authorization" not in first.headers
    assert first.caller != caller_with(KEY)  # which stands for the Authorization header


@pytest.mark.parametrize(
    "address",
    [
        "https://mine.openai.azure.com",
        "https://mine.openai.azure.com/openai/deployments/four",
        "https://mine.openai.azure.com/?api-version=1",
    ],
)
def test_another_address_at_azure_is_answered_with_how_to_write_it(address: str) -> None:
    with pytest.raises(UsageError, match=r"OPENAI_BASE_URL: at Azure an address is https://NAME"):
        ModelLayers({"SPANLAB_MODEL": "m", "OPENAI_BASE_URL": address}).resolve()


def test_headers_of_a_setting_are_sent(
    model_server: ModelServer, choose: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "gateway-secret-0123456789"
    monkeypatch.setenv("OPENAI_HEADERS", f"X-Title=spanlab, X-Gateway-Key={secret},X-List=a%2Cb")
    model_server.script(in_turn(marked("4"), fail(418, f"not with {secret}")))
    task = Task(choose(), Meter(), None)
    assert asked(task) == "4"
    headers = model_server.requests[0].headers
    assert (headers["x-title"], headers["x-list"]) == ("spanlab", "a,b")
    assert headers["x-gateway-key"] == secret
    assert "not with [key]" in asked(task)


@pytest.mark.parametrize("headers", ["X-Title", "X Title=1", "X-Title=a%0Ab"])
def test_headers_in_another_form_are_refused(
    choose: Choose, monkeypatch: pytest.MonkeyPatch, headers: str
) -> None:
    monkeypatch.setenv("OPENAI_HEADERS", headers)
    with pytest.raises(UsageError, match="OPENAI_HEADERS is name=value"):
        Task(choose(), Meter(), None)


@pytest.mark.parametrize("threaded", [False, True], ids=["loop", "thread"])
def test_a_reply_of_a_byte_at_a_time_is_given_up_in_time(
    model_server: ModelServer, choose: Choose, threaded: bool
) -> None:
    model_server.script(lambda ask: replace(marked("4"), pause=0.05))
    said = asked(Task(choose(timeout=0.5), Meter(), None), threaded=threaded)
    assert "gave no answer within 0.5 s" in said


def big(size: int) -> dict[str, Any]:
    """Return a reply's body with an answer of so many characters."""
    body = dict(marked("4" * size).body)
    return {**body, "model": "m", "usage": None}


PACKED = gzip.compress(json.dumps(big(3 * 2**20)).encode())


@pytest.mark.parametrize("threaded", [False, True], ids=["loop", "thread"])
@pytest.mark.parametrize(
    "reply",
    [
        ScriptedReply(body=big(3 * 2**20)),
        ScriptedReply(body=PACKED, headers={"Content-Encoding": "gzip"}),
        ScriptedReply(status=500, body=b"x" * 3 * 2**20),
    ],
    ids=["plain", "compressed", "error"],
)
def test_a_reply_is_cut_at_a_limit(
    model_server: ModelServer,
    choose: Choose,
    monkeypatch: pytest.MonkeyPatch,
    reply: ScriptedReply,
    threaded: bool,
) -> None:
    monkeypatch.setenv("SPANLAB_REPLY_LIMIT", "2")
    model_server.script(lambda ask: reply)
    said = asked(Task(choose(retries=2), Meter(), None), threaded=threaded)
    assert "sent more than 2 MiB" in said
    assert model_server.count == 1


@pytest.mark.parametrize("given", ["0", "many", "nan", "inf", "-1"])
def test_a_limit_that_is_none_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPANLAB_REPLY_LIMIT", raising=False)
    assert reply_limit() == 16 * 2**20
    monkeypatch.setenv("SPANLAB_REPLY_LIMIT", given)
    with pytest.raises(UsageError, match="SPANLAB_REPLY_LIMIT"):
        reply_limit()


def test_a_key_that_the_endpoint_echoes_is_neither_kept_nor_shown(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    model_server.script(lambda ask: marked(f"Your key is {KEY}.", echo={"key": KEY}))
    task = Task(choose(), Meter(), cache)
    assert [asked(task), asked(task)] == ["Your key is [key]."] * 2
    assert model_server.count == 1
    assert KEY.encode() not in (cache / "answers.db").read_bytes()
    assert KEY.encode() not in (cache / "answers.db-wal").read_bytes()


ECHOES = {
    "as it stands": KEY,
    "a pair in base64": base64.b64encode(f"user:{KEY}".encode()).decode(),
    "cut": f"{KEY[:9]}...{KEY[-6:]}",
    "masked": f"{KEY[:9]}*****{KEY[-6:]}",
    "at the end": KEY[:20],
    "in an address": f"https://host.example/v1?key={KEY}&n=1",
}


@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize("form", ECHOES)
def test_an_error_of_an_endpoint_shows_no_part_of_the_key(
    model_server: ModelServer, choose: Choose, form: str, status: int
) -> None:
    model_server.script(lambda _: fail(status, f"you sent {ECHOES[form]}"))
    shown, sent = asked(Task(choose(), Meter(), None)), ECHOES[form]
    assert "[key]" in shown
    secret = sent[8:] if form == "a pair in base64" else KEY
    windows = (secret[at : at + 6] for at in range(len(secret) - 8))
    assert not [window for window in windows if window in shown]


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_keys_that_begin_alike_a_cut_one_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    monkeypatch.setattr(redaction, "_seen", set())
    keys = ["sk-provider-one-kG7wPq2ZxT", "sk-provider-one-Lm4tRv9YbNcD83"]
    for key in (keys[first], keys[1 - first]):
        remember(key)
    for key in keys:
        assert redact(f"you sent {key[:21]}") == "you sent [key]"


def test_of_a_key_that_begins_like_a_short_one_a_cut_one_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redaction, "_seen", set())
    for key in ("sk-secret", KEY):
        remember(key)
    assert redact(f"you sent {KEY[:20]}") == "you sent [key]"
    assert redact(f"you sent {KEY}, not sk-secret") == "you sent [key], not [key]"


def test_a_word_that_serves_as_key_stays_in_answers(
    model_server: ModelServer, choose: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "ollama")
    model_server.script(lambda ask: marked("It runs on ollama."))
    assert asked(Task(choose(), Meter(), None)) == "It runs on ollama."


def test_calls_under_way_are_as_many_as_were_asked_for(
    model_server: ModelServer, choose: Choose
) -> None:
    model_server.script(lambda ask: marked("4", delay=0.02))
    task = Task(choose(), Meter(concurrency=8), None)

    async def together() -> list[str]:
        return await asyncio.gather(*(task.aask(str(number)) for number in range(60)))

    assert asyncio.run(together()) == ["4"] * 60
    assert model_server.busiest == 8


@pytest.mark.parametrize("how", HOSTILE)
def test_a_reply_that_is_made_to_harm_ends_in_words(
    choose: Choose, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("SPANLAB_REPLY_LIMIT", "8")
    with wire(lambda _line, _body: HOSTILE[how]()) as server:
        task = Task(choose(base_url=f"{server.url}/v1", timeout=60), Meter(), None)
        with pytest.raises(Exception) as caught:
            asyncio.run(task.aask("?"))
        assert isinstance(translate(caught.value), SpanlabError)
        assert len(str(translate(caught.value))) < 1000
        assert server.sent < 64 * MIB


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "-1", "1.5", '"many"', "9" * 400])
def test_a_reply_whose_figures_are_none_is_still_an_answer(choose: Choose, number: str) -> None:
    reply = json.dumps({**marked("4 \ud83d").body, "usage": {"prompt_tokens": 0}})
    reply = reply.replace('"prompt_tokens": 0', f'"prompt_tokens": {number}')
    with wire(lambda _line, _body: [head(), reply.encode()]) as server:
        task = Task(choose(base_url=f"{server.url}/v1"), Meter(), None)
        assert asked(task) == "4 \ufffd"

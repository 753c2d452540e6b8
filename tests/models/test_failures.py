"""Every failure of an endpoint ends in an error that says why, soon, and without the key."""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from model_fixtures import KEY
from model_task import Task, marked

from spanlab.base.errors import (
    BudgetError,
    ConfigurationError,
    ContextTooLongError,
    ForbiddenError,
    ModelError,
    NoConnectionError,
    NoCreditError,
    RefusedError,
    SpanlabError,
    UnavailableError,
    UnknownModelError,
    UnparsableAnswerError,
    UsageError,
    WrongKeyError,
)
from spanlab.models import Meter, ModelChoice, TokenPrice, language_model, translate
from spanlab.schema.usage import Budget, Usage
from spanlab.testing import ModelServer, ScriptedReply, fail, in_turn, say

Choose = Callable[..., ModelChoice]

FAILURES = [
    ("wrong-key", fail(401, f"Incorrect API key: {KEY}"), WrongKeyError, "OPENAI_API_KEY"),
    ("forbidden", fail(403, "no access to m"), ConfigurationError, "no access to m"),
    ("no-credit", fail(402, "Payment required"), NoCreditError, "credits exhausted"),
    ("no-quota", fail(429, "x", code="insufficient_quota"), NoCreditError, "credits exhausted"),
    ("no-balance", fail(403, "Insufficient balance"), NoCreditError, "credits exhausted"),
    ("policy", fail(400, "x", code="content_policy_violation"), RefusedError, "content policy"),
    ("filter", marked("x", finish="content_filter"), RefusedError, "refused"),
    (
        "no-choice",
        ScriptedReply(body=b'{"choices": []}'),
        RefusedError,
        "let no answer of m through",
    ),
    ("refusal", say(None, refusal="I cannot help with that."), RefusedError, "cannot help"),
    ("long", fail(400, "x", code="context_length_exceeded"), ContextTooLongError, "passages"),
    ("too-large", fail(413, "prompt is too long"), ContextTooLongError, "passages"),
    ("cut", marked("half", finish="length"), UnparsableAnswerError, "max_tokens"),
    ("empty", say(""), UnparsableAnswerError, "empty"),
    (
        "no-json",
        ScriptedReply(body=b"<html>gateway</html>"),
        UnparsableAnswerError,
        "not a chat completion",
    ),
    ("half-reply", ScriptedReply(body=b'{"choices": [{"mess'), UnparsableAnswerError, "not a chat"),
    ("no-answer", ScriptedReply(body={"x": 1}), UnparsableAnswerError, "not a chat completion"),
    ("no-model", fail(404, "The model m does not exist"), UnknownModelError, "the model's name"),
    ("odd", fail(418, "a teapot"), ModelError, "418"),
    ("crowded", fail(429, "slow down"), UnavailableError, "rate limit"),
    ("broken", fail(500, "oops"), UnavailableError, "500"),
    ("overloaded", fail(503, "overloaded"), UnavailableError, "503"),
    ("dropped", ScriptedReply(drop=True), UnavailableError, "127.0.0.1"),
]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["thread", "loop"])
@pytest.mark.parametrize(
    "case", [case[1:] for case in FAILURES], ids=[case[0] for case in FAILURES]
)
def test_a_failing_endpoint_ends_in_its_own_error(
    model_server: ModelServer,
    choose: Choose,
    caplog: pytest.LogCaptureFixture,
    case: tuple[ScriptedReply, type[ModelError], str],
    asynchronous: bool,
) -> None:
    """Exhausted credits are said as such."""
    reply, kind, words = case
    model_server.script(lambda ask: reply)
    meter = Meter()
    task = Task(choose(), meter, None)
    caplog.set_level(logging.DEBUG)
    error, trace = failure_of(task, asynchronous)
    assert type(error) is kind
    assert words in str(error)
    assert KEY not in str(error) + trace + caplog.text + repr(task.lm) + repr(task.lm.engine)
    assert meter.usage.failed == 1
    assert model_server.count == 1


def failure_of(task: Task, asynchronous: bool = False) -> tuple[SpanlabError, str]:
    """Return what a question ended in, and the traceback of it all."""
    try:
        answer = asyncio.run(task.aask("?")) if asynchronous else task.ask("?")
    except Exception as error:  # noqa: BLE001 - what dspy made of it is the point
        return translate(error), "".join(traceback.format_exception(error))
    raise AssertionError(f"answered {answer!r}")


BROKEN = {
    "no-sections": say("Here you are: nothing to see"),
    "broken-json": say('{"ans": ["unclosed'),
    "other-keys": say('{"reply": "4"}'),
    "half": say("[[ ## ans"),
    "a-number": say("42"),
    "a-list": say("[1, 2]"),
}


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN.keys())
def test_an_answer_in_the_wrong_form_ends_in_a_reason(
    model_server: ModelServer, choose: Choose, reply: ScriptedReply
) -> None:
    """Broken JSON ends neither the run nor in a KeyError."""
    model_server.script(lambda ask: reply)
    error, _ = failure_of(Task(choose(), Meter(), None))
    assert type(error) is UnparsableAnswerError
    assert model_server.count == 2  # asked once more for JSON, and no more than that
    assert model_server.requests[1].body["response_format"] == {"type": "json_object"}


def test_json_in_the_second_answer_is_taken(model_server: ModelServer, choose: Choose) -> None:
    model_server.script(in_turn(say("well, four"), say('{"answer": "4"}')))
    assert Task(choose(), Meter(), None).ask("2+2") == "4"


def test_json_that_can_be_repaired_is(model_server: ModelServer, choose: Choose) -> None:
    """JSON with a missing bracket is repaired."""
    model_server.script(lambda ask: say('```json\n{"answer": "4",}'))
    assert Task(choose(), Meter(), None).ask("2+2") == "4"


def test_an_unreadable_answer_is_asked_for_anew_next_time(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    """An item that failed so can be retried alone."""
    model_server.script(lambda ask: say("nonsense"))
    task = Task(choose(), Meter(), cache)
    failure_of(task)
    model_server.script(lambda ask: marked("4"))
    assert task.ask("?") == "4"
    assert model_server.count == 3


@pytest.mark.parametrize("asynchronous", [False, True], ids=["thread", "loop"])
def test_a_failed_call_is_never_remembered(
    model_server: ModelServer, choose: Choose, cache: Path, asynchronous: bool
) -> None:
    model_server.script(in_turn(fail(401), marked("4")))
    task = Task(choose(), Meter(), cache)
    failure_of(task, asynchronous)
    assert task.ask("?") == "4"


PASSING = {
    "crowded": fail(429, retry_after=0.01),
    "broken": fail(500),
    "dropped": ScriptedReply(drop=True),
}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["thread", "loop"])
@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING.keys())
def test_what_passes_is_tried_again(
    model_server: ModelServer, choose: Choose, reply: ScriptedReply, asynchronous: bool
) -> None:
    model_server.script(in_turn(reply, marked("4")))
    meter = Meter()
    task = Task(choose(retries=1), meter, None)
    assert (asyncio.run(task.aask("?")) if asynchronous else task.ask("?")) == "4"
    assert (meter.usage.calls, meter.usage.failed) == (1, 0)


def test_retries_have_an_end(model_server: ModelServer, choose: Choose) -> None:
    model_server.script(lambda ask: fail(429, retry_after=0.01))
    error, _ = failure_of(Task(choose(retries=5), Meter(), None))
    assert type(error) is UnavailableError
    assert model_server.count == 6


def test_the_endpoint_decides_how_long_to_wait(model_server: ModelServer, choose: Choose) -> None:
    model_server.script(in_turn(fail(429, retry_after=0.4), marked("4")))
    Task(choose(retries=3), Meter(), None).ask("?")
    first, second = model_server.requests
    assert second.at - first.at >= 0.4


def test_nobody_waits_for_an_hour(model_server: ModelServer, choose: Choose) -> None:
    model_server.script(lambda ask: fail(429, "daily limit", retry_after=3600))
    error, _ = failure_of(Task(choose(retries=5), Meter(), None))
    assert "wait 3600 s" in str(error)
    assert model_server.count == 1


@pytest.mark.parametrize("asynchronous", [False, True], ids=["thread", "loop"])
def test_a_silent_endpoint_is_given_up_in_time(
    model_server: ModelServer, choose: Choose, asynchronous: bool
) -> None:
    model_server.script(lambda ask: ScriptedReply(hang=True))
    error, _ = failure_of(Task(choose(timeout=0.2), Meter(), None), asynchronous)
    assert type(error) is UnavailableError
    assert "0.2 s" in str(error)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["thread", "loop"])
def test_an_endpoint_that_is_not_there_is_named(choose: Choose, asynchronous: bool) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        port = taken.getsockname()[1]
        choice = choose(base_url=f"http://127.0.0.1:{port}/v1")
        error, _ = failure_of(Task(choice, Meter(), None), asynchronous)
    assert type(error) is ConfigurationError
    assert f"no connection to 127.0.0.1:{port}: “Connection refused”; check" in str(error)


def test_an_endpoint_that_has_answered_is_not_taken_for_a_wrong_one(
    choose: Choose,
) -> None:
    with ModelServer(in_turn(marked("4"), fail(403, "not this prompt"))) as server:
        task = Task(choose(base_url=server.url), Meter(), None)
        task.ask("1")
        error, _ = failure_of(task)
        assert type(error) is ForbiddenError
    error, _ = failure_of(task)
    assert type(error) is NoConnectionError


def test_the_budget_stops_before_the_next_call(model_server: ModelServer, choose: Choose) -> None:
    model_server.script(lambda ask: marked("4"))
    meter = Meter(Budget(calls=2))
    task = Task(choose(), meter, None)
    task.ask("1")
    task.ask("2")
    error, _ = failure_of(task)
    assert type(error) is BudgetError
    assert model_server.count == 2
    assert meter.usage.calls == 2


def test_calls_at_once_stay_within_the_budget(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    model_server.script(lambda ask: marked("4", delay=0.02))
    task = Task(choose(), Meter(Budget(calls=10)), cache)

    async def together() -> list[str | BaseException]:
        questions = (task.aask(str(number)) for number in range(30))
        return await asyncio.gather(*questions, return_exceptions=True)

    ended = asyncio.run(together())
    assert ended.count("4") == 10
    assert {type(translate(e)) for e in ended if isinstance(e, BaseException)} == {BudgetError}
    assert model_server.count == 10


def test_money_is_no_limit_without_a_price(choose: Choose) -> None:
    with pytest.raises(UsageError, match="SPANLAB_PRICE"):
        language_model(choose(), Meter(Budget(cost=1.0)), cache=None)


def test_a_refusal_is_paid_for(model_server: ModelServer, choose: Choose) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
    model_server.script(lambda ask: say(None, refusal="No.", usage=usage))
    meter = Meter()
    price = TokenPrice(input=1, cached=1, output=100)
    failure_of(Task(choose(price=price), meter, None))
    assert replace(meter.usage, cost=None) == Usage(1, 0, 1, 1000, 0, 10, None)
    assert meter.usage.cost == pytest.approx(0.002)


def test_an_unknown_exception_becomes_a_model_error() -> None:
    error = translate(KeyError("answer"))
    assert type(error) is ModelError
    assert "KeyError" in str(error)


def test_spanlabs_own_error_is_found_among_the_causes() -> None:
    inner = RefusedError("no")
    outer = ValueError("wrapped")
    outer.__cause__ = inner
    assert translate(outer) is inner

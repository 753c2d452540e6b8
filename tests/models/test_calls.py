"""Calls as they go over the wire, from any thread and event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from model_fixtures import KEY
from model_task import Task, marked, signature

from spanlab.base.errors import StoreError
from spanlab.base.runtime import shared_item
from spanlab.models import Meter, ModelChoice, TokenPrice, language_model, predicting, translate
from spanlab.models.building import endpoint_client
from spanlab.schema.usage import Usage
from spanlab.testing import ModelServer, ScriptedReply, fail, in_turn, say

pytestmark = pytest.mark.usefixtures("four")

Choose = Callable[..., ModelChoice]


def test_a_model_is_asked_under_its_own_name_with_its_options(
    model_server: ModelServer, choose: Choose
) -> None:
    Task(
        choose(model="meta/llama-3.3-70b", temperature=0.2, max_tokens=77, seed=9), Meter(), None
    ).ask("?")
    (ask,) = model_server.requests
    assert ask.path == "/v1/chat/completions"
    sent = {name: value for name, value in ask.body.items() if name != "messages"}
    assert sent == {
        "model": "meta/llama-3.3-70b",
        "temperature": 0.2,
        "max_tokens": 77,
        "seed": 9,
    }


def test_later_calls_are_sent_as_openai_wrote_the_first_and_it_repeats_those_that_fail(
    model_server: ModelServer, choose: Choose
) -> None:
    """Only the first call of an endpoint, and what failed once, is written by openai."""
    crowded = fail(429, retry_after=0.01)
    told = (marked("4"), marked("4"), crowded, crowded, marked("4"))
    model_server.script(in_turn(*told))
    task = Task(choose(retries=2), Meter(), None)
    assert [task.ask(question) for question in ("?", "and then?", "at last?")] == ["4"] * 3
    first, second, *third = [
        {name: value for name, value in ask.headers.items() if name != "content-length"}
        for ask in model_server.requests
    ]
    assert second == first
    assert [int(headers.pop("x-stainless-retry-count")) for headers in third] == [0, 1, 2]
    del first["x-stainless-retry-count"]
    assert third == [first] * 3
    bodies = [ask.body for ask in model_server.requests]
    assert bodies[2] == bodies[3] == bodies[4] != bodies[1] != bodies[0]


def test_a_first_call_that_is_given_up_holds_up_none_that_came_with_it(
    model_server: ModelServer, choose: Choose
) -> None:
    """The others wait until openai has written it, for as long as it is about to."""
    client = endpoint_client(choose(), Meter())
    prompts = [
        json.dumps({"model": "m", "messages": [{"role": "user", "content": f"{number}?"}]}).encode()
        for number in range(3)
    ]

    async def calls() -> list[str | None]:
        tasks = [asyncio.create_task(client.answer(prompt)) for prompt in prompts]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return [(await task).text for task in tasks[1:]]

    assert all("4" in str(text) for text in asyncio.run(asyncio.wait_for(calls(), 20)))
    assert {ask.text for ask in model_server.requests} == {"1?", "2?"}


@pytest.mark.parametrize("model", ["o1", "gpt-5.2-mini", "deployment-7"])
def test_options_are_sent_whatever_the_model_is_called(
    model_server: ModelServer, choose: Choose, model: str
) -> None:
    """What it takes is learnt from the endpoint."""
    options = {"temperature": 0.2, "max_tokens": 500, "reasoning_effort": "low"}
    assert Task(choose(model=model, **options), Meter(), None).ask("?") == "4"
    sent = model_server.requests[0].body
    assert {name: sent[name] for name in options} == options


def test_an_endpoint_without_keys_is_sent_a_placeholder(
    model_server: ModelServer, choose: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert Task(choose(), Meter(), None).ask("?") == "4"


def test_schemas_are_sent_where_the_endpoint_takes_them(
    model_server: ModelServer, choose: Choose
) -> None:
    model_server.script(lambda ask: say('{"answer": "4"}'))
    assert Task(choose(structured=True), Meter(), None).ask("?") == "4"
    form = model_server.requests[0].body["response_format"]
    assert form["type"] == "json_schema"
    assert list(form["json_schema"]["schema"]["properties"]) == ["answer"]


def test_the_prompt_begins_with_what_calls_have_in_common(
    model_server: ModelServer, choose: Choose
) -> None:
    """The task over many items; of tasks that share an item, passages and question."""
    import dspy

    lm = language_model(choose(), Meter(), cache=None)
    passages = "\n".join(f"[{number}] A passage on towers." for number in range(200))
    tasks = (signature(), dspy.Signature("passages, question, text -> answer", "Correct."))
    with predicting(lm):
        for text in ("Built in 1889.", "Built in 1989."):
            dspy.Predict(tasks[0])(passages="[0] A tower.", question="When?", text=text)
        with shared_item(is_shared=True):
            for task in tasks:
                dspy.Predict(task)(passages=passages, question="When?", text="Built in 1889.")
    first, second = (ask.text for ask in model_server.requests[:2])
    assert "Say what is wrong." in shared_start(first, second)
    first, second = (ask.text for ask in model_server.requests[2:])
    common = shared_start(first, second)
    assert passages in common
    assert common.endswith("Built in 1889.\n\n# Task\n\n")
    assert "Say what is wrong." in first[len(common) :]


def shared_start(first: str, second: str) -> str:
    """Return the longest text that both begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    return first[: next(place for place, (one, other) in pairs if one != other)]


def test_tokens_and_cost_are_the_endpoints(model_server: ModelServer, choose: Choose) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    model_server.script(lambda ask: marked("4", usage=usage))
    meter = Meter()
    Task(choose(price=TokenPrice(input=10, cached=1, output=100)), meter, None).ask("?")
    # 600 x 10 + 400 x 1 + 50 x 100 = 11400 per million.
    assert replace(meter.usage, cost=None) == Usage(1, 0, 0, 1000, 400, 50, None)
    assert meter.usage.cost == pytest.approx(0.0114)


def test_threads_and_loops_send_the_same_and_share_answers(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    choice = choose(model="meta/llama", temperature=0.2, seed=9)
    for folder in (None, cache):
        task = Task(choice, Meter(), folder)
        assert task.ask("?") == asyncio.run(task.aask("?")) == "4"
    first, second, third = model_server.requests  # with a cache the loop finds the thread's answer
    assert first.body == second.body == third.body
    assert first.headers.keys() == second.headers.keys()


def test_a_repeated_attempt_sends_the_same(model_server: ModelServer, choose: Choose) -> None:
    model_server.script(in_turn(fail(503, retry_after=0.0), marked("4")))
    task = Task(choose(retries=1, temperature=0.3), Meter(), None)
    assert asyncio.run(task.aask("?")) == "4"
    first, second = model_server.requests
    assert first.body == second.body


def test_every_attempt_waits_for_its_turn(model_server: ModelServer, choose: Choose) -> None:
    model_server.script(in_turn(fail(503, retry_after=0.0), marked("4")))
    turns: list[int] = []

    async def turn() -> None:
        turns.append(model_server.count)

    assert asyncio.run(Task(choose(retries=1), Meter(before_attempt=turn), None).aask("?")) == "4"
    assert turns == [0, 1]


def test_why_there_is_no_turn_is_said_as_it_is(model_server: ModelServer, choose: Choose) -> None:
    async def turn() -> None:
        raise StoreError("the jobs' database is away")

    meter = Meter(before_attempt=turn)
    with pytest.raises(Exception) as ended:
        asyncio.run(Task(choose(retries=1), meter, None).aask("?"))
    reason = translate(ended.value)
    assert (type(reason), str(reason)) == (StoreError, "the jobs' database is away")
    assert (model_server.count, meter.usage) == (0, Usage())


def test_each_question_of_one_loop_is_sent_as_it_is(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    """What a key was made from is sent; never that of another question."""
    model_server.script(lambda ask: marked(ask.text.split("[[ ## question ## ]]\n")[-1][:3]))
    task = Task(choose(), Meter(), cache)

    async def together() -> list[str]:
        return await asyncio.gather(*(task.aask(f"{number:03}") for number in range(40)))

    assert asyncio.run(together()) == [f"{number:03}" for number in range(40)]


def test_one_language_model_serves_many_loops_and_threads(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    meter = Meter()
    task = Task(choose(), meter, cache)

    async def some(name: int) -> list[str]:
        return await asyncio.gather(*(task.aask(f"{name} {number}") for number in range(5)))

    for name in range(3):  # one loop after the other
        assert asyncio.run(some(name)) == ["4"] * 5
    with ThreadPoolExecutor(4) as pool:  # and several at once, with plain threads between
        loops = [pool.submit(asyncio.run, some(name)) for name in range(3, 7)]
        threads = [pool.submit(task.ask, f"thread {number}") for number in range(8)]
        assert all(loop.result() == ["4"] * 5 for loop in loops)
        assert all(thread.result() == "4" for thread in threads)
    assert meter.usage.calls == model_server.count == 7 * 5 + 8


def test_a_cancelled_call_leaves_its_place_in_the_budget(
    model_server: ModelServer, choose: Choose
) -> None:
    model_server.script(lambda ask: ScriptedReply(hang=True))
    meter = Meter()
    task = Task(choose(), meter, None)

    async def cancelled() -> None:
        asking = asyncio.create_task(task.aask("?"))
        while not model_server.count:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(cancelled())
    assert meter.usage == Usage()


def test_programs_with_a_language_model_can_be_copied(choose: Choose) -> None:
    """Optimisers copy programs; the copy shares connection, meter and cache."""
    import copy

    lm = language_model(choose(), Meter(), cache=None)
    assert copy.deepcopy(lm).engine is lm.engine
    assert KEY not in json.dumps(lm.kwargs) + repr(vars(lm))


def test_nothing_is_written_about_calls(
    model_server: ModelServer, choose: Choose, capfd: pytest.CaptureFixture[str]
) -> None:
    model_server.script(lambda ask: fail(401, f"bad key {KEY}"))
    task = Task(choose(), Meter(), None)
    with pytest.raises(Exception, match="does not accept"):
        task.ask("?")
    shown = capfd.readouterr()
    assert shown.out == ""
    assert KEY not in shown.err
    assert task.lm.history == []

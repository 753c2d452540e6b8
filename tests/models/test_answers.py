"""A question is paid for once: while it is being asked, and ever after from the answers on disk."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from model_fixtures import KEY
from model_task import Task, marked

from spanlab.base.errors import StoreError
from spanlab.models import Meter, ModelChoice, language_model, predicting, translate
from spanlab.models.cache import answer_file
from spanlab.schema.usage import Usage
from spanlab.testing import ModelServer, ScriptedReply, fail, in_turn, say

pytestmark = pytest.mark.usefixtures("four")

Choose = Callable[..., ModelChoice]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["thread", "loop"])
def test_the_same_question_costs_one_call(
    model_server: ModelServer, choose: Choose, cache: Path, asynchronous: bool
) -> None:
    for _ in range(2):  # another language model finds the answer too
        meter = Meter()
        task = Task(choose(), meter, cache)
        assert (asyncio.run(task.aask("?")) if asynchronous else task.ask("?")) == "4"
    assert model_server.count == 1
    assert meter.usage == Usage(from_cache=1)


def test_what_is_being_asked_is_not_asked_twice(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    model_server.script(lambda ask: marked("4", delay=0.3))
    meters = [Meter(), Meter()]  # of two jobs, say
    tasks = [Task(choose(), meter, cache) for meter in meters]

    async def together() -> list[str]:
        return await asyncio.gather(*(task.aask("?") for task in tasks for _ in range(5)))

    with ThreadPoolExecutor(2) as pool:  # and in two event loops
        loops = [pool.submit(asyncio.run, together()) for _ in range(2)]
        assert [loop.result() for loop in loops] == [["4"] * 10] * 2
    assert model_server.count == 1
    assert sum((meter.usage for meter in meters), Usage()).calls == 1
    assert sum((meter.usage for meter in meters), Usage()).from_cache == 19


def test_other_answers_to_one_question_are_asked_for_at_once(
    model_server: ModelServer, choose: Choose, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another rollout, another key, and whoever keeps no answers share none."""
    model_server.script(lambda ask: marked("4", delay=0.3))
    task = Task(choose(temperature=1.0), Meter(), cache)
    forgetful = Task(choose(temperature=1.0), Meter(), None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-key-000")
    other = Task(choose(temperature=1.0), Meter(), cache)

    async def together() -> None:
        questions = [task.aask("?", config={"rollout_id": rollout}) for rollout in (None, 1, 2)]
        await asyncio.gather(*questions, other.aask("?"), forgetful.aask("?"), forgetful.aask("?"))

    asyncio.run(together())
    assert model_server.count == 6


def test_the_failure_of_what_is_being_asked_is_everyones(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    model_server.script(lambda ask: replace(fail(402, "no funds"), delay=0.3))
    task = Task(choose(), Meter(), cache)

    async def together() -> list[str | BaseException]:
        return await asyncio.gather(*(task.aask("?") for _ in range(5)), return_exceptions=True)

    reasons = {str(translate(end)) for end in asyncio.run(together()) if isinstance(end, Exception)}
    assert len(reasons) == 1
    assert reasons.pop().startswith("credits exhausted")
    assert model_server.count == 1


def test_whoever_waited_asks_if_the_one_who_asked_is_stopped(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    model_server.script(in_turn(ScriptedReply(hang=True), lambda ask: marked("4")))
    meter = Meter()
    task = Task(choose(), meter, cache)

    async def one_is_stopped() -> list[str]:
        first = asyncio.create_task(task.aask("?"))
        while not model_server.count:
            await asyncio.sleep(0.01)
        others = [asyncio.create_task(task.aask("?")) for _ in range(3)]
        await asyncio.sleep(0.1)  # until they wait
        first.cancel()
        return await asyncio.gather(*others)

    assert asyncio.run(one_is_stopped()) == ["4"] * 3
    assert model_server.count == 2
    assert meter.usage.calls == 1


def test_the_cache_holds_json_and_no_key(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    Task(choose(), Meter(), cache).ask("?")
    with sqlite3.connect(cache / "answers.db") as connection:
        ((slot, answer),) = connection.execute("SELECT key, answer FROM answers").fetchall()
    connection.close()
    assert "4" in json.loads(answer)["choices"][0]["message"]["content"]
    assert len(slot) == 64
    for file in cache.iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_another_key_finds_the_same_answers(
    model_server: ModelServer, choose: Choose, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Task(choose(), Meter(), cache).ask("?")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-key-000")
    Task(choose(), Meter(), cache).ask("?")
    assert model_server.count == 1


@pytest.mark.parametrize(
    "more", [{"model": "other"}, {"temperature": 0.7}, {"seed": 2}, {"max_tokens": 9}], ids=str
)
def test_whatever_the_answer_depends_on_is_asked_anew(
    model_server: ModelServer, choose: Choose, cache: Path, more: dict[str, object]
) -> None:
    Task(choose(), Meter(), cache).ask("?")
    Task(choose(**more), Meter(), cache).ask("?")
    assert model_server.count == 2


def test_rollouts_are_different_answers(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    """Optimisers ask for several answers to one prompt, and for the same ones again."""
    task = Task(choose(temperature=1.0), Meter(), cache)
    for rollout in (None, 1, 2, 1, None):
        task.ask("?", config={"rollout_id": rollout})
    assert model_server.count == 3
    lm = task.lm.copy(rollout_id=2, temperature=1.0)
    with predicting(lm):
        task._predict(passages="P", question="?", text="T")
    assert model_server.count == 3


def test_several_answers_to_one_call_are_several_calls(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    lm = language_model(choose(temperature=1.0), Meter(), cache=answer_file(cache))
    numbers = iter("123456")
    model_server.script(lambda ask: say(next(numbers)))
    assert lm("?", n=3) == ["1", "2", "3"]
    assert lm("?", n=3) == ["1", "2", "3"]
    assert model_server.count == 3


def test_a_spoilt_entry_is_asked_anew(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    Task(choose(), Meter(), cache).ask("?")
    for spoilt in (
        "not json",
        "[1]",
        '{"choices": 7}',
        '{"choices": [{"message": {"tool_calls": [7]}}]}',
    ):
        with sqlite3.connect(cache / "answers.db") as connection:
            connection.execute("UPDATE answers SET answer = ?", (spoilt,))
        connection.close()
        assert Task(choose(), Meter(), cache).ask("?") == "4"


def test_a_file_that_is_no_cache_is_named(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "answers.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(StoreError, match=r"answers\.db"):
        answer_file(cache)

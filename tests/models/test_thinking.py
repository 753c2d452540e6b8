"""What a model thinks aloud is no part of its answer, whatever tags its chat template has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from model_task import Task, marked

from spanlab.base.errors import UnparsableAnswerError
from spanlab.models import Meter, ModelChoice, translate
from spanlab.testing import ModelServer, ScriptedReply, say
from spanlab.text.thoughts import split_reply

DRAFT = 'Say [[ ## answer ## ]]\n5\nor {"answer": "6"}'
ANSWER = "[[ ## answer ## ]]\n4"
MENTION = "[[ ## answer ## ]]\nThe tag <think>so</think> ends."


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param(f"<think>{DRAFT}</think>{ANSWER}", ANSWER, id="tags"),
        pytest.param(f"{DRAFT}</think>{ANSWER}", ANSWER, id="a closing tag alone"),
        pytest.param(f"<THINKING>\n{DRAFT}\n</THINKING>{ANSWER}", ANSWER, id="in capitals"),
        pytest.param(f"<think>a</think>b<think>{DRAFT}</think>{ANSWER}", ANSWER, id="twice"),
        pytest.param(f"<think>a <think> b</think> c</think>{ANSWER}", ANSWER, id="nested"),
        pytest.param(f"<seed:think>{DRAFT}</seed:think>{ANSWER}", ANSWER, id="Seed"),
        pytest.param(f"[THINK]{DRAFT}[/THINK]{ANSWER}", ANSWER, id="Mistral"),
        pytest.param(f"◁think▷{DRAFT}◁/think▷{ANSWER}", ANSWER, id="Kimi"),
        pytest.param(
            f"<|START_THINKING|>{DRAFT}<|END_THINKING|>{ANSWER}<|END_RESPONSE|>",
            ANSWER,
            id="Cohere",
        ),
        pytest.param(
            f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant"
            f"<|channel|>final <|constrain|>json<|message|>{ANSWER}<|return|>",
            ANSWER,
            id="harmony",
        ),
        pytest.param(f"analysisWe say {DRAFT}assistantfinal{ANSWER}", ANSWER, id="harmony, bare"),
        pytest.param(f"{ANSWER}<|im_end|>\n</s>", ANSWER, id="end of turn"),
        pytest.param(MENTION, MENTION, id="an answer on tags"),
        pytest.param(f"<think>{DRAFT}</think>{MENTION}", MENTION, id="and after reasoning"),
        pytest.param(f"{DRAFT}</think>{MENTION}", MENTION, id="and after a closing tag alone"),
        pytest.param("It is 4.", "It is 4.", id="none"),
        pytest.param(f"<think>{DRAFT}", "", id="cut off"),
        pytest.param(f"Well.\n<think>{DRAFT}", "", id="cut off after a word"),
        pytest.param(f"<think>a</think><think>{DRAFT}", "", id="cut off the second time"),
        pytest.param(f"<|channel|>analysis<|message|>{DRAFT}", "", id="harmony, cut off"),
    ],
)
def test_reasoning_is_told_from_the_answer(text: str, answer: str) -> None:
    said = split_reply(text)
    assert said.answer == answer
    assert said.thoughts in text


@pytest.mark.parametrize("cached", [False, True], ids=["asked", "from the cache"])
def test_reasoning_is_kept_beside_the_answer(
    model_server: ModelServer,
    choose: Callable[..., ModelChoice],
    cache: Path,
    cached: bool,
) -> None:
    model_server.script(lambda ask: say(f"<think>{DRAFT}</think>{ANSWER}"))
    meter = Meter()
    task = Task(choose(), meter, cache)
    for _ in range(2 if cached else 1):
        with meter.calls() as used:
            assert task.ask("?") == "4"
        assert used.thoughts == [f"<think>{DRAFT}</think>"]


@pytest.mark.parametrize(
    "reply",
    [
        say(f"<think>{DRAFT}"),
        say(None, finish="stop"),
        marked("4", finish="length"),
    ],
    ids=["in the content", "in a field of its own", "cut off by the limit"],
)
def test_reasoning_without_an_answer_is_a_failure_that_names_the_limit(
    model_server: ModelServer, choose: Callable[..., ModelChoice], reply: ScriptedReply
) -> None:
    reply.body["choices"][0]["message"]["reasoning_content"] = DRAFT
    model_server.script(lambda ask: reply)
    with pytest.raises(Exception) as raised:
        Task(choose(), Meter(), None).ask("?")
    error = translate(raised.value)
    assert isinstance(error, UnparsableAnswerError)
    assert "raise max_tokens" in str(error)
    assert model_server.count == 1


def test_json_that_a_server_takes_for_reasoning_is_the_answer(
    model_server: ModelServer, choose: Callable[..., ModelChoice]
) -> None:
    reply = say(None, finish="stop")
    reply.body["choices"][0]["message"]["reasoning_content"] = '{"answer": "4"}'
    model_server.script(lambda ask: reply)
    assert Task(choose(), Meter(), None).ask("?") == "4"

"""Answers that were paid for once are found again: their keys stay what they were.

The keys in ``cache_keys.json`` were made by the first client of this project, before ``openai``
sent the calls. A key that changes there makes everybody pay for all of their answers anew.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.models import AnswerCache, Meter, ModelChoice, language_model, predicting

KEYS: dict[str, list[str]] = json.loads(Path(__file__).with_name("cache_keys.json").read_text())
OWN = "http://localhost:8000/v1"
AZURE = "https://mine.openai.azure.com/openai"
DEPLOYED = f"{AZURE}/deployments/four?api-version=2024-10-21"
PICTURE = "data:image/png;base64,iVBORw0KGgo="
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"year": {"type": "integer"}},
            "required": ["year"],
            "additionalProperties": False,
        },
    },
}
WITH_PICTURE = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": PICTURE}},
]
TALK = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "When was the tower built?"},
    {"role": "assistant", "content": "In 1889."},
    {"role": "user", "content": "And where?"},
]
QUESTION = "When was the tower built?"
EVERYTHING = {
    "temperature": 0.2,
    "top_p": 0.9,
    "seed": 42,
    "max_tokens": 500,
    "reasoning_effort": "low",
}

Case = tuple[dict[str, Any], dict[str, Any]]  # of the choice, and of the call


def plain(content: object = QUESTION, **more: object) -> dict[str, Any]:
    """Return the arguments of a call with one message."""
    return {"messages": [{"role": "user", "content": content}], **more}


CASES: dict[str, Case] = {
    "plain": ({}, plain()),
    "prompt": ({}, {"prompt": QUESTION}),
    "talk": ({}, {"messages": TALK}),
    "french": ({}, plain("Où est la tour Eiffel ? À “Paris” – bien sûr…")),
    "chinese": ({}, plain("艾菲尔铁塔建于哪一年？")),
    "arabic": ({}, plain("متى بُني برج إيفل؟")),
    "emoji": ({}, plain("🗼 ½ \u2028 \x7f")),
    "marks": ({}, plain('"quoted" \\ back / slash\n\ttab\r\u0001')),
    "empty": ({}, plain("")),
    "long": ({}, plain("tower " * 5000)),
    "parts": ({}, plain([{"type": "text", "text": QUESTION}])),
    "picture": ({}, plain(WITH_PICTURE)),
    "developer": ({}, {"messages": [{"role": "developer", "content": "Be brief."}, *TALK[1:]]}),
    "other model": ({"model": "meta/llama-3.3-70b"}, plain()),
    "temperature": ({"temperature": 0.2}, plain()),
    "temperature 0": ({"temperature": 0}, plain()),
    "top_p": ({"top_p": 0.9}, plain()),
    "seed": ({"seed": 42}, plain()),
    "max_tokens": ({"max_tokens": 500}, plain()),
    "reasoning_effort": ({"reasoning_effort": "high"}, plain()),
    "everything": (EVERYTHING, plain()),
    "of the call": ({"temperature": 0.2}, plain(temperature=0.7, max_tokens=9)),
    "named anew": ({}, plain(max_completion_tokens=9)),
    "left to the endpoint": ({"temperature": 0.2}, plain(temperature=None)),
    "rollout 1": ({"temperature": 1.0}, plain(rollout_id=1)),
    "rollout 2": ({"temperature": 1.0}, plain(rollout_id=2)),
    "three": ({"temperature": 1.0}, plain(n=3)),
    "three, rollout 1": ({"temperature": 1.0}, plain(n=3, rollout_id=1)),
    "stop": ({}, plain(stop=["END", "\n\n"])),
    "json": ({}, plain(response_format={"type": "json_object"})),
    "schema": ({"structured": True}, plain(response_format=SCHEMA)),
    "schema and options": (EVERYTHING, plain(response_format=SCHEMA)),
    "tools": ({}, plain(tools=[WEATHER], tool_choice="auto")),
    "patience is no part of it": ({"timeout": 3.0, "retries": 1}, plain()),
    "openai": ({"base_url": None}, plain()),
    "openai, limited": ({"base_url": None, "max_tokens": 500}, plain()),
    "openai, schema": ({"base_url": None, **EVERYTHING}, plain(response_format=SCHEMA)),
    "azure": ({"base_url": f"{AZURE}/v1"}, plain()),
    "azure, deployed": ({"base_url": DEPLOYED}, plain()),
    "azure, deployed and limited": ({"base_url": DEPLOYED, "max_tokens": 5}, plain()),
}


class _Recorder(AnswerCache):
    """Has an answer for everything, and notes what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []

    async def _get(self, key: str) -> str:
        self.keys.append(key)
        message = {"role": "assistant", "content": "In 1889."}
        return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})

    async def _put(self, key: str, text: str) -> None:
        raise AssertionError("nothing is asked")

    async def forget(self, key: str) -> None:
        raise AssertionError("nothing is unreadable")


# Adapters pass such messages, and dspy warns whoever else does.
@pytest.mark.filterwarnings("ignore:Passing OpenAI-style:DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_key_of_a_call_is_what_it_was(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thread, in a loop, and on the shorter way that calls of detectors go."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests-000")
    options, call = CASES[name]
    recorder = _Recorder()
    choice = ModelChoice(**{"model": "m", "base_url": OWN, **options})
    model = language_model(choice, Meter(), cache=recorder)
    model(**call)
    asyncio.run(model.acall(**call))
    with predicting(model):
        asyncio.run(model.acall(**call))
    assert recorder.keys == KEYS[name] * 3

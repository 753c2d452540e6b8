"""The scripted model through the client of OpenAI, as applications see it."""

from __future__ import annotations

import base64
import json
import math
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import openai
import pytest
from pydantic import BaseModel

import spanlab
from spanlab.base.errors import InputError
from spanlab.testing import (
    MODES,
    ModelServer,
    UngroundedError,
    assert_grounded,
    call_tools,
    fail,
    in_turn,
    rules,
    say,
)

PASSAGE = "The tower was built in 1889 by Gustave Eiffel in Paris."
TEXT = "The tower – built in 1889 – is 330 m tall. 🗼"
SEARCH: Any = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
}
ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "How tall?"}]}


@pytest.fixture
def client(model_server: ModelServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=model_server.url, api_key="any", max_retries=0) as client:
        yield client


def streamed(client: openai.OpenAI, **more: Any) -> list[Any]:
    return list(client.chat.completions.create(**ASKED, stream=True, **more))


def test_a_stream_brings_the_text_in_pieces_and_usage_if_asked(
    model_server: ModelServer, client: openai.OpenAI
) -> None:
    model_server.script(lambda ask: say(TEXT))
    chunks = streamed(client, stream_options={"include_usage": True})
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(filter(None, pieces)) == TEXT
    assert len(list(filter(None, pieces))) > 2
    assert (chunks[0].choices[0].delta.role, chunks[-2].choices[0].finish_reason) == (
        "assistant",
        "stop",
    )
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert (chunks[-1].choices, chunks[-1].model) == ([], "m")
    whole = client.chat.completions.create(**ASKED)
    assert chunks[-1].usage == whole.usage
    assert [chunk.usage for chunk in streamed(client)] == [None] * (len(chunks) - 1)


def test_the_clients_own_helper_puts_a_stream_together(
    model_server: ModelServer, client: openai.OpenAI
) -> None:
    model_server.script(call_tools(search=[{"query": "tower"}, {"query": "Paris, “where”?"}]))
    with client.chat.completions.stream(**ASKED, tools=[SEARCH]) as stream:
        message = stream.get_final_completion().choices[0].message
    called = [json.loads(call.function.arguments) for call in message.tool_calls or ()]
    assert called == [{"query": "tower"}, {"query": "Paris, “where”?"}]


def test_a_stream_comes_event_by_event_if_there_is_a_pause(
    model_server: ModelServer, client: openai.OpenAI
) -> None:
    model_server.script(lambda ask: replace(say("a" * 36), pause=0.1))
    begun = time.monotonic()
    times = [time.monotonic() - begun for _ in client.chat.completions.create(**ASKED, stream=True)]
    assert times[-1] - times[0] > 0.25
    assert len(times) == 5


def test_errors_and_modes_hold_for_streams(
    model_server: ModelServer, client: openai.OpenAI
) -> None:
    model_server.script(lambda ask: fail(429, "slow down"))
    with pytest.raises(openai.RateLimitError, match="slow down"):
        streamed(client)
    model_server.script(lambda ask: say(TEXT))
    model_server.mode = "reasoning-content"
    deltas = [chunk.choices[0].delta for chunk in streamed(client)]
    thoughts = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
    assert "".join(thoughts) == "It is 42, I think."
    for mode in MODES:
        model_server.mode = mode
        raw = json.dumps({**ASKED, "stream": True}).encode()
        answer = model_server.answer("POST", "/v1/chat/completions", {}, raw)
        assert "the script failed" not in str(answer.reply.body), mode
        assert answer.encoded().startswith(b"HTTP/1.1 ")


def agent(client: openai.OpenAI) -> str:
    """Ask until the model calls no tool any more."""
    messages: list[Any] = [{"role": "user", "content": "How tall is the tower?"}]
    while True:
        reply = client.chat.completions.create(model="m", messages=messages, tools=[SEARCH])
        message = reply.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        assert reply.choices[0].finish_reason == "tool_calls"
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            assert call.type == "function"
            found = f"{PASSAGE} {json.loads(call.function.arguments)['query']}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})


def test_an_agent_is_scripted_by_the_names_of_its_tools(
    model_server: ModelServer, client: openai.OpenAI
) -> None:
    model_server.script(
        in_turn(
            call_tools(search={"query": "height"}),
            call_tools(search={"query": "year"}),
            say("330 m."),
        )
    )
    assert agent(client) == "330 m."
    last = model_server.requests[-1].messages
    found = [message["content"].split()[-1] for message in last if message["role"] == "tool"]
    assert found == ["height", "year"]
    calls = [call["id"] for message in last for call in message.get("tool_calls", ())]
    assert len(set(calls)) == 2
    model_server.script(
        rules(("Eiffel", say("Done.")), otherwise=call_tools(search={"query": "?"}))
    )
    assert agent(client) == "Done."


def test_a_tool_that_is_not_offered_fails_the_test(
    model_server: ModelServer, client: openai.OpenAI
) -> None:
    model_server.script(call_tools(lookup={}))
    with pytest.raises(openai.InternalServerError, match="no tool lookup is offered"):
        agent(client)


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_vectors_are_the_same_each_time_and_close_where_words_are(
    model_server: ModelServer, client: openai.OpenAI, form: Any
) -> None:
    texts = ["When was the tower built?", PASSAGE, "Oslo is a city of Norway."]
    more = {"encoding_format": form} if form else {}
    replies = [client.embeddings.create(model="m", input=texts, **more) for _ in range(2)]
    vectors = [[_floats(each.embedding) for each in reply.data] for reply in replies]
    assert vectors[0] == vectors[1]
    query, near, far = vectors[0]
    assert math.isclose(math.hypot(*query), 1, rel_tol=1e-5)
    assert cosine(query, near) > cosine(query, far) + 0.2
    assert replies[0].usage.prompt_tokens > 0
    assert [each.index for each in replies[0].data] == [0, 1, 2]


def _floats(vector: Any) -> list[float]:
    if isinstance(vector, str):
        data = base64.b64decode(vector)
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    return list(vector)


def test_vectors_are_of_texts_and_tokens_of_any_size_and_take_no_turn(
    model_server: ModelServer, client: openai.OpenAI
) -> None:
    model_server.script(in_turn(say("first"), say("second")))
    inputs: list[Any] = ["one", ["one", ""], [1, 2, 3], [[1, 2], [3]], ""]
    for given in inputs:
        found = client.embeddings.create(
            model="m", input=given, dimensions=8, encoding_format="float"
        ).data
        assert len(found) == (2 if len(given) == 2 else 1)
        assert {len(each.embedding) for each in found} == {8}
    assert client.chat.completions.create(**ASKED).choices[0].message.content == "first"
    model_server.script(lambda ask: fail(400, "too long"))
    with pytest.raises(openai.BadRequestError, match="too long"):
        client.embeddings.create(model="m", input="x")


@dataclass
class Document:
    """As LangChain has them."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)


class Node(BaseModel):
    """As LlamaIndex has them: what iterates over it meets its fields."""

    text: str
    score: float = 0.5


@pytest.mark.system("offline")
@pytest.mark.parametrize(
    "passages",
    [
        [Document(PASSAGE, {"source": "a.txt"})],
        Document(PASSAGE),
        (Node(text=PASSAGE), Document("Oslo.")),
        Node(text=PASSAGE),
        [{"text": PASSAGE}],
        {"text": PASSAGE},
        [spanlab.Passage(text=PASSAGE)],
        PASSAGE,
    ],
)
def test_passages_are_what_retrievers_return(passages: Any) -> None:
    assert_grounded("The tower was built in 1889.", passages)
    with pytest.raises(UngroundedError, match="1989"):
        assert_grounded("The tower was built in 1989 by Ada Smith.", passages)


@pytest.mark.parametrize("passages", ["", [""], [" ", {"text": ""}], []])
def test_nothing_to_hold_an_answer_against_is_no_passed_test(passages: Any) -> None:
    with pytest.raises(InputError, match="passages: none has a text"):
        assert_grounded("The tower was built in 1889.", passages)

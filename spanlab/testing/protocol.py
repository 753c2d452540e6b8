"""How the scripted model's replies look in OpenAI's protocol: as streams, and as vectors."""

from __future__ import annotations

import hashlib
import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from struct import pack
from typing import Any, Final

from spanlab.testing.replies import ModelRequest, ScriptedReply

EVENTS: Final = "text/event-stream"
_PIECE: Final = 12  # characters of a text in one event
_DIMENSIONS: Final = 64  # of a vector, where nothing else is asked for
CHARACTERS_PER_TOKEN: Final = 4  # in the usage of an answer


def with_usage(body: Mapping[str, Any], ask: ModelRequest) -> dict[str, Any]:
    """Return a chat completion with model and usage, where it has none."""
    body = dict(body)
    cached = body.pop("cached_tokens", 0)
    tokens = len(ask.text) // CHARACTERS_PER_TOKEN + 1
    answered = len(str(body["choices"][0]["message"]["content"] or "")) // CHARACTERS_PER_TOKEN + 1
    usage = {
        "prompt_tokens": tokens,
        "completion_tokens": answered,
        "total_tokens": tokens + answered,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {"model": ask.body.get("model", "scripted"), "usage": usage, **body}


def streamed(ask: ModelRequest, reply: ScriptedReply) -> ScriptedReply:
    """Return a chat completion as server-sent events if the request asks for a stream."""
    is_chat = isinstance(reply.body, dict) and "choices" in reply.body
    if not (ask.body.get("stream") and is_chat and reply.status == 200):
        return reply
    wanted = (ask.body.get("stream_options") or {}).get("include_usage")
    chunks = [*_chunks(reply.body), *([_usage_chunk(reply.body)] if wanted else [])]
    lines = [json.dumps(chunk, ensure_ascii=True) for chunk in chunks]
    events = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
    headers = {**reply.headers, "Content-Type": EVENTS}
    return replace(reply, body=events.encode(), headers=headers)


def _head(body: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in body.items() if name not in ("choices", "usage")}
    return {**kept, "object": "chat.completion.chunk"}


def _usage_chunk(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the last chunk, which has no choice."""
    return {**_head(body), "choices": [], "usage": body.get("usage")}


def _chunks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the chunks of all choices, of each the role first and why it ended last."""
    for choice in body["choices"]:
        for delta in _deltas(choice.get("message") or {}):
            yield _chunk(body, choice, delta, None)
        yield _chunk(body, choice, {}, choice.get("finish_reason"))


def _chunk(
    body: Mapping[str, Any], choice: Mapping[str, Any], delta: dict[str, Any], finish: Any
) -> dict[str, Any]:
    more = {name: value for name, value in choice.items() if name != "message"}
    return {**_head(body), "choices": [{**more, "delta": delta, "finish_reason": finish}]}


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message bit by bit: texts in pieces, each call of a tool with its name first."""
    told = {name: value for name, value in message.items() if value is not None}
    calls = told.pop("tool_calls", ())
    texts = {name: told.pop(name) for name, text in list(told.items()) if _is_text(name, text)}
    yield {"role": "assistant", "content": "", **told}
    for name, text in texts.items():
        for piece in _pieces(text):
            yield {name: piece}
    for index, call in enumerate(calls):
        arguments = call["function"]["arguments"]
        named = {**call, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **named}]}
        for piece in _pieces(arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _is_text(name: str, value: Any) -> bool:
    return isinstance(value, str) and name != "role"


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def embedded(ask: ModelRequest) -> ScriptedReply:
    """Return vectors for the request's inputs: the more words two share, the closer they are."""
    given = ask.body.get("input", "")
    inputs = given if isinstance(given, list) and given else [given]
    inputs = [inputs] if isinstance(inputs[0], int) else inputs  # one text, as tokens
    dimensions = ask.body.get("dimensions") or _DIMENSIONS
    as_text = ask.body.get("encoding_format") == "base64"
    vectors = [vector_of(text, dimensions) for text in inputs]
    data = [
        {"object": "embedding", "index": index, "embedding": _packed(vector) if as_text else vector}
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(len(text) // CHARACTERS_PER_TOKEN + 1 for text in inputs)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    model = ask.body.get("model", "scripted")
    return ScriptedReply(body={"object": "list", "model": model, "data": data, "usage": usage})


def vector_of(text: str | list[int], dimensions: int) -> list[float]:
    """Return the vector of a text, or of its tokens: each word's place and sign, at length 1."""
    words = re.findall(r"\w+", text.lower()) if isinstance(text, str) else map(str, text)
    vector = [0.0] * dimensions
    for word in words:
        hashed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        vector[(hashed >> 1) % dimensions] += 1.0 if hashed & 1 else -1.0
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else [1.0, *vector[1:]]


def _packed(vector: list[float]) -> str:
    return b64encode(pack(f"<{len(vector)}f", *vector)).decode()

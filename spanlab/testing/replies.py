"""What a scripted model is asked, what it replies, and the ways to script it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ModelRequest:
    """One request; ``headers`` have lower-case names and lack the key.

    ``at`` is when it came (Unix seconds); ``caller`` tells keys apart, see ``caller_with``.
    """

    number: int
    method: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    caller: str = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The chat messages."""
        return list(self.body.get("messages", []))

    @property
    def text(self) -> str:
        """All messages' text, one after the other."""
        return "\n\n".join(str(message.get("content") or "") for message in self.messages)

    @property
    def fingerprint(self) -> str:
        """The same for two requests that ask the same."""
        return hashlib.sha256(json.dumps(self.body, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class ScriptedReply:
    """What goes back; ``hang`` never answers and ``drop`` closes the connection instead.

    ``delay`` is in seconds before it, ``pause`` in seconds between one byte and the next.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    pause: float = 0.0
    hang: bool = False
    drop: bool = False


Script = Callable[[ModelRequest], ScriptedReply]


def caller_with(key: str) -> str:
    """Return the ``caller`` of requests with a key."""
    return hashlib.sha256(f"Bearer {key}".encode()).hexdigest()[:8]


def say(
    text: str | None,
    *,
    finish: str = "stop",
    cached: int = 0,
    refusal: str | None = None,
    delay: float = 0.0,
    **more: Any,
) -> ScriptedReply:
    """Answer like a chat model; ``more`` goes into the body (``citations``, ``usage`` …).

    Args:
        text: the message's content.
        finish: its ``finish_reason``.
        cached: prompt tokens that count as cached.
        refusal: the message's refusal.
        delay: seconds before the reply.
        more: further fields of the body.
    """
    message = {"role": "assistant", "content": text, "refusal": refusal}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "cached_tokens": cached,
        **more,
    }
    return ScriptedReply(body=body, delay=delay)


def say_fields(**fields: Any) -> ScriptedReply:
    """Answer with a task's output fields, in the marked sections that DSPy's prompts ask for.

    Args:
        fields: name and value of each; what is no string is written as JSON.
    """
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in fields.items()
    }
    sections = [f"[[ ## {name} ## ]]\n{text}" for name, text in texts.items()]
    return say("\n\n".join([*sections, "[[ ## completed ## ]]"]))


def fail(
    status: int,
    message: str = "scripted",
    *,
    code: str | None = None,
    retry_after: float | None = None,
) -> ScriptedReply:
    """Answer with an error in OpenAI's form."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return ScriptedReply(
        status, {"error": {"message": message, "code": code, "type": code}}, headers
    )


def in_turn(*replies: ScriptedReply | Script) -> Script:
    """Give one reply after the other; the last one stays."""
    left = list(replies)

    def script(ask: ModelRequest) -> ScriptedReply:
        reply = left.pop(0) if len(left) > 1 else left[0]
        return reply(ask) if callable(reply) else reply

    return script


def rules(*pairs: tuple[str, ScriptedReply | Script], otherwise: ScriptedReply | Script) -> Script:
    """Give the reply of the first pair whose words stand in the prompt."""

    def script(ask: ModelRequest) -> ScriptedReply:
        reply = next((reply for words, reply in pairs if words in ask.text), otherwise)
        return reply(ask) if callable(reply) else reply

    return script

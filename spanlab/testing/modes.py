"""How servers and models wrap what they mean: the scripted server's named modes.

A script says what the model *means*; ``server.mode = "think"`` has it wrapped as a certain kind of
server or model does. Every mode says what a client should make of it: the meant answer, or a
failure whose message holds ``fails_with``. To add one, write a line into one of the tables; the
tests that go through ``MODES`` take it up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spanlab.testing.replies import FORMS, THOUGHTS, ModelRequest, ScriptedReply, fail


@dataclass(frozen=True)
class ServerMode:
    """One way to reply.

    ``change`` gets the request and the meant reply, with its usage filled in. ``fails_with`` are
    words of the failure that it should end in; "" if the meant answer should be read.
    """

    change: Callable[[ModelRequest, ScriptedReply], ScriptedReply]
    fails_with: str = ""


_Change = Callable[[dict[str, Any]], dict[str, Any]]


def _content(change: Callable[[str], Any], fails_with: str = "") -> ServerMode:
    def changed(message: dict[str, Any]) -> dict[str, Any]:
        return {**message, "content": change(message["content"] or "")}

    return _message(changed, fails_with)


def _message(change: _Change, fails_with: str = "") -> ServerMode:
    return _choice(lambda choice: {**choice, "message": change(choice["message"])}, fails_with)


def _choice(change: _Change, fails_with: str = "") -> ServerMode:
    return _body(
        lambda body: {**body, "choices": [change(choice) for choice in body["choices"]]},
        fails_with,
    )


def _body(change: _Change, fails_with: str = "") -> ServerMode:
    """Change the body of what is a chat completion; other replies stay as they are."""

    def changed(ask: ModelRequest, meant: ScriptedReply) -> ScriptedReply:
        if not (isinstance(meant.body, dict) and "choices" in meant.body):
            return meant
        return replace(meant, body=change(meant.body))

    return ServerMode(changed, fails_with)


def _instead(reply: ScriptedReply, fails_with: str) -> ServerMode:
    return ServerMode(lambda ask, meant: reply, fails_with)


def _refused(given: Callable[[ModelRequest], bool], message: str) -> ServerMode:
    """Refuse requests of a kind with status 400 and a message, as servers name what they lack."""
    return ServerMode(lambda ask, meant: fail(400, message) if given(ask) else meant)


def _without(parameter: str, message: str) -> ServerMode:
    return _refused(lambda ask: parameter in ask.body, message)


def _has_system(ask: ModelRequest) -> bool:
    return any(message.get("role") == "system" for message in ask.messages)


_MESSAGES: Mapping[str, ServerMode] = {
    "as-meant": _content(lambda text: text),
    **{name: _content(form) for name, form in FORMS.items()},
    **{name: _content(form) for name, form in THOUGHTS.items()},
    "reasoning-content": _message(lambda sent: {**sent, "reasoning_content": "It is 42, I think."}),
    "reasoning": _message(lambda sent: {**sent, "reasoning": "It is 42, I think."}),
    "parts": _content(lambda text: [{"type": "text", "text": text}]),
    "thinking-part": _content(
        lambda text: [
            {"type": "thinking", "thinking": [{"type": "text", "text": "It is 42, I think."}]},
            {"type": "text", "text": text},
        ]
    ),
    "more-in-message": _message(
        lambda sent: {**sent, "tool_calls": None, "function_call": None, "annotations": []}
    ),
    "bare-message": _message(lambda sent: {"role": "assistant", "content": sent["content"]}),
    "no-finish": _choice(lambda choice: {**choice, "finish_reason": None}),
    "usage-null": _body(lambda body: {**body, "usage": None}),
    "usage-missing": _body(lambda body: {k: v for k, v in body.items() if k != "usage"}),
    "bare-body": _body(lambda body: {"choices": body["choices"]}),
}

# Messages as vLLM, Ollama, OpenAI, Azure and others word them.
_REFUSING: Mapping[str, ServerMode] = {
    "no-response-format": _without("response_format", "'response_format' is not supported"),
    "no-json-schema": _refused(
        lambda ask: ask.body.get("response_format", {}).get("type") == "json_schema",
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported",
    ),
    "no-system-role": _refused(_has_system, "System role not supported"),
    "no-temperature": _without(
        "temperature",
        "Unsupported value: 'temperature' does not support 0.2 with this model. "
        "Only the default (1) value is supported.",
    ),
    "max-completion-tokens": _without(
        "max_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
    ),
    "max-tokens": _without(
        "max_completion_tokens",
        "Unrecognized request argument supplied: max_completion_tokens",
    ),
    "no-stop": _without("stop", "Unsupported parameter: 'stop' is not supported with this model."),
    "no-seed": _without(
        "seed",
        "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), "
        "'msg': 'Extra inputs are not permitted'}]",
    ),
    "no-n": _without("n", "n: only 1 is supported"),
    "no-reasoning-effort": _without(
        "reasoning_effort", "Unrecognized request argument supplied: reasoning_effort"
    ),
}

_LONG = "This model's maximum context length is 4096 tokens. Please reduce the length."
_FAILING: Mapping[str, ServerMode] = {
    "error-object": _instead(
        ScriptedReply(
            400, {"object": "error", "message": _LONG, "type": "BadRequestError", "code": 400}
        ),
        "too long",
    ),
    "error-detail": _instead(
        ScriptedReply(404, {"detail": "Model not loaded"}), "Model not loaded"
    ),
    "error-details": _instead(
        ScriptedReply(422, {"detail": [{"loc": ["body", "model"], "msg": "field required"}]}),
        "field required",
    ),
    "error-string": _instead(
        ScriptedReply(404, {"error": "model 'm' not found, try pulling it first"}),
        "try pulling it first",
    ),
    "error-in-choice": _choice(
        lambda choice: {
            "index": 0,
            "message": {"role": "assistant", "content": ""},
            "finish_reason": "error",
            "error": {"code": 502, "message": "Upstream error from provider"},
        },
        "Upstream error from provider",
    ),
    "error-200": _instead(
        ScriptedReply(200, {"error": {"message": "Provider returned error", "code": 502}}),
        "Provider returned error",
    ),
    "error-200-quota": _instead(
        ScriptedReply(200, {"error": {"message": "Insufficient credits", "code": 402}}),
        "credits exhausted",
    ),
    "html": _instead(
        ScriptedReply(
            502,
            b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>",
            {"Content-Type": "text/html"},
        ),
        "502 Bad Gateway",
    ),
    "html-200": _instead(
        ScriptedReply(
            200,
            b"<!doctype html><html><body><h1>Please log in</h1></body></html>",
            {"Content-Type": "text/html"},
        ),
        "Please log in",
    ),
    "out-of-memory": _instead(
        fail(500, "CUDA out of memory. Tried to allocate 2.00 GiB"), "out of memory"
    ),
    "over-quota": _instead(fail(429, "x", code="insufficient_quota"), "credits exhausted"),
    "flagged": _instead(fail(403, "Your input was flagged by moderation"), "content policy"),
    "filtered": _instead(
        fail(400, "The response was filtered", code="content_filter"), "content policy"
    ),
    "filtered-choice": _choice(
        lambda choice: {**choice, "finish_reason": "content_filter"}, "refused"
    ),
    "cut": _choice(lambda choice: {**choice, "finish_reason": "length"}, "cut off"),
    "think-cut": _content(lambda text: f"<think>\nIs it {text}", "raise max_tokens"),
    "talk": _content(lambda text: "I'm sorry, but I can't help with that.", "I'm sorry"),
    "broken": _content(lambda text: '[{"text": "The", "reas', '"reas'),
    "empty": _content(lambda text: "", "empty"),
    "null": _content(lambda text: None, "empty"),
}

MODES: Mapping[str, ServerMode] = {**_MESSAGES, **_REFUSING, **_FAILING}

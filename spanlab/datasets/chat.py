"""Chats as lists of messages: the last answer of the model, and what it was asked."""

from __future__ import annotations

from typing import Any, NamedTuple

from spanlab.errors import InputError

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
}


class Turn(NamedTuple):
    """The last answer in a chat, and the last message of the user before it ("" if there is none).

    ``is_whole`` says that the chat has nothing else.
    """

    question: str
    answer: str
    is_whole: bool


def last_turn(value: Any, field: str) -> Turn:
    """Return the last turn of a chat.

    Args:
        value: a list of ``{"role", "content"}`` as OpenAI writes them, or of ``{"from", "value"}``;
            contents that are lists of parts have their texts joined.
        field: where it stands, for messages.

    Raises:
        InputError: it is no chat, or the model says nothing in it.
    """
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InputError(
            "this is no chat", field=field, found=value, expected="a list of messages with roles"
        )
    said = [_ROLES.get(str(each.get("role", each.get("from"))), "") for each in value]
    if "assistant" not in said:
        raise InputError(
            "the model says nothing in this chat",
            field=field,
            found=f"the roles {', '.join(str(m.get('role', m.get('from'))) for m in value)}",
            expected="a message of the role assistant",
        )
    answer = len(said) - 1 - said[::-1].index("assistant")
    asked = [index for index in range(answer) if said[index] == "user"]
    question = _text(value[asked[-1]]) if asked else ""
    return Turn(question, _text(value[answer]), len(value) == 1 + bool(asked))


def _text(message: dict[str, Any]) -> str:
    content = message.get("content", message.get("value"))
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))

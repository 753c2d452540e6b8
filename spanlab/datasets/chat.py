"""Chats as lists of messages: what the model answered, what it was asked, what its tools found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from spanlab.errors import InputError

_USER, _MODEL, _TOOL = "User", "Assistant", "Tool"
_ROLES: Final = {
    **dict.fromkeys(("user", "human"), _USER),
    **dict.fromkeys(("assistant", "gpt", "model", "ai", "chatbot", "bot"), _MODEL),
    **dict.fromkeys(("tool", "function", "function_response", "observation", "ipython"), _TOOL),
}
_SAYS: Final = ("role", "from", "type", "sender", "speaker")  # the fields that may hold the role
_HOLDS: Final = ("content", "value", "text", "message")  # … and the text


class Turn(NamedTuple):
    """An answer in a chat, what it was asked, and what tools had found by then.

    The question is the user's last message before it ("" if there is none); where the chat was
    under way by then, all that both had said, with who said it before each. ``is_whole`` says that
    the chat has nothing else.
    """

    question: str
    answer: str
    passages: tuple[str, ...]
    is_whole: bool


class _Said(NamedTuple):
    role: str  # "" for one that is none of ours, such as the system's
    text: str


def is_message(value: Any) -> bool:
    """Say whether a value is a message with a text: ``{"role", "content"}`` and the like."""
    return isinstance(value, Mapping) and bool(_role(value)) and bool(text_of_message(value))


def is_chat(value: Any) -> bool:
    """Say whether a value is a list of messages, of which at least one has a role of a chat."""
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        return False
    return any(map(_role, value)) and all(any(name in each for name in _SAYS) for each in value)


def answers_in(chat: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the messages in which the model says something, counted from 0."""
    return [n for n, each in enumerate(chat) if _role(each) == _MODEL and text_of_message(each)]


def turn_of(value: Any, field: str, number: int | None = None) -> Turn:
    """Return a turn of a chat, by default its last.

    Args:
        value: a list of ``{"role", "content"}`` as OpenAI writes them, of ``{"from", "value"}``, or
            of ``{"type", "content"}``; contents that are lists of parts have their texts joined.
        field: where it stands, for messages.
        number: the turn, counted from 0, among those of ``answers_in``.

    Raises:
        InputError: it is no chat, or the model says nothing in it.
    """
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise InputError(
            "this is no chat", field=field, found=value, expected="a list of messages with roles"
        )
    answers = answers_in(value)
    if not answers:
        raise InputError(
            "the model says nothing in this chat",
            field=field,
            found=f"the roles {', '.join(map(_written_role, value))}",
            expected="a message of the role assistant",
        )
    at = answers[-1 if number is None else number]
    before = [said for each in value[:at] for said in _said(each)]
    talk = [said for said in before if said.role in (_USER, _MODEL) and said.text]
    found = tuple(said.text for said in before if said.role == _TOOL and said.text.strip())
    is_whole = len(value) == 1 + len(talk) <= 2
    return Turn(_question(talk), text_of_message(value[at]), found, is_whole)


def asked_in(value: Any) -> Turn:
    """Return a chat that an answer elsewhere ends, as its turn without the answer."""
    return turn_of([*value, {"role": "assistant", "content": "…"}], "")._replace(answer="")


def text_of_message(message: Mapping[str, Any]) -> str:
    """Return the text of a message; empty if it has none, as one that only calls tools."""
    return "".join(said.text for said in _said(message) if said.role == _role(message))


def _question(talk: Sequence[_Said]) -> str:
    """Return what was said before an answer: one message alone, or a talk with its speakers."""
    if len(talk) == 1:
        return talk[0].text if talk[0].role == _USER else ""
    return "\n\n".join(f"{said.role}: {said.text}" for said in talk)


def _said(message: Mapping[str, Any]) -> Iterator[_Said]:
    """Yield what a message says, and what tools say in it, which some put into the user's."""
    role = _role(message)
    content = next((message[name] for name in _HOLDS if message.get(name) is not None), None)
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield _Said(role, part)
        elif isinstance(part, Mapping) and part.get("type") == "tool_result":
            inner = {"role": "tool", "content": part.get("content")}
            yield _Said(_TOOL, text_of_message(inner))
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield _Said(role, part["text"])


def _role(message: Mapping[str, Any]) -> str:
    return _ROLES.get(_written_role(message).lower(), "")


def _written_role(message: Mapping[str, Any]) -> str:
    return str(next((message[name] for name in _SAYS if message.get(name)), None))
